"""Keyword arguments of statsmodels and scikit-learn, refused in the words of this library."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

#: What to give in place of arguments of other libraries.
_HERE = {
    "sample_weight": "weights=, for survey weights",
    "freq_weights": "weights=, for survey weights",
    "offset": "exposure=np.exp(offset), with a log link",
    "groups": "unit= and max_rows_per_unit=, whose rows are protected together",
    "cov_type": "cov_type= of the estimator",
    "alpha": "level=, which is 1 - alpha",
}
#: The same of estimators themselves.
_OF_ESTIMATORS = {
    "epsilon": "privacy=ApproxDP(epsilon, delta)",
    "data_norm": "row_bound=, or bounds of columns in schema=",
    "bounds_X": "bounds of columns in schema=",
    "bounds_y": "bounds of the response in schema=",
    "C": "alpha=, the ridge penalty, where the estimator has one",
    "alpha": "no penalty, or take DPRidge",
}


def in_own_names(method: Callable[P, R]) -> Callable[P, R]:
    """The same method, which tells whoever calls it as another library's what the argument is called here."""
    own, made = inspect.signature(method).parameters, method.__name__ == "__init__"
    here = _OF_ESTIMATORS if made else _HERE

    @wraps(method)
    def call(*args: P.args, **given: P.kwargs) -> R:
        for name in given:
            if name in here and name not in own:
                who = type(args[0]).__name__ if made else method.__name__
                raise TypeError(f"{who} takes no {name}=: give {here[name]}")
        return method(*args, **given)

    return call
