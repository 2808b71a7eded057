"""Differentially private regression: release noisy moments once, everything after is post-processing."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpregress.version import __version__

if TYPE_CHECKING:
    from dpregress.accounting import (
        GDP,
        ZCDP,
        ApproxDP,
        MemoryLedger,
        Policy,
        PrivacyStatement,
        PureDP,
        SQLiteLedger,
    )
    from dpregress.estimators import (
        DPGammaRegressor,
        DPGLMRegressor,
        DPLinearRegression,
        DPLogisticRegression,
        DPPoissonRegressor,
        DPRidge,
        DPSurvival,
        LocalGLM,
        MarginalsRegression,
        VerticalRegression,
    )
    from dpregress.estimators.moments_release import release_moments, shared_space
    from dpregress.estimators.released_moments import ReleasedMoments, SharedSpace, combine
    from dpregress.estimators.saved import load
    from dpregress.experiments import plan
    from dpregress.public import Categorical, Numeric, PublicMoments, Schema
    from dpregress.rows import SQLQuery

#: Every public name and the package it lives in; imported on first use, so that `import dpregress` is quick.
_EXPORTS = {
    "GDP": "accounting",
    "ZCDP": "accounting",
    "ApproxDP": "accounting",
    "Categorical": "public",
    "DPGLMRegressor": "estimators",
    "DPGammaRegressor": "estimators",
    "DPLinearRegression": "estimators",
    "DPLogisticRegression": "estimators",
    "DPPoissonRegressor": "estimators",
    "DPRidge": "estimators",
    "DPSurvival": "estimators",
    "LocalGLM": "estimators",
    "MarginalsRegression": "estimators",
    "MemoryLedger": "accounting",
    "Numeric": "public",
    "Policy": "accounting",
    "PrivacyStatement": "accounting",
    "PublicMoments": "public",
    "PureDP": "accounting",
    "ReleasedMoments": "estimators.released_moments",
    "SQLQuery": "rows",
    "SQLiteLedger": "accounting",
    "Schema": "public",
    "SharedSpace": "estimators.released_moments",
    "VerticalRegression": "estimators",
    "combine": "estimators.released_moments",
    "load": "estimators.saved",
    "plan": "experiments",
    "release_moments": "estimators.moments_release",
    "shared_space": "estimators.moments_release",
}

__all__ = [
    "GDP",
    "ZCDP",
    "ApproxDP",
    "Categorical",
    "DPGLMRegressor",
    "DPGammaRegressor",
    "DPLinearRegression",
    "DPLogisticRegression",
    "DPPoissonRegressor",
    "DPRidge",
    "DPSurvival",
    "LocalGLM",
    "MarginalsRegression",
    "MemoryLedger",
    "Numeric",
    "Policy",
    "PrivacyStatement",
    "PublicMoments",
    "PureDP",
    "ReleasedMoments",
    "SQLQuery",
    "SQLiteLedger",
    "Schema",
    "SharedSpace",
    "VerticalRegression",
    "__version__",
    "combine",
    "load",
    "plan",
    "release_moments",
    "shared_space",
]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'dpregress' has no attribute {name!r}")
    value = getattr(import_module(f"dpregress.{_EXPORTS[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
