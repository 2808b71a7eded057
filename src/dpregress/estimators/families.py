"""The estimator of each family, for the command line and the documentation."""

from __future__ import annotations

from collections.abc import Mapping

from dpregress.errors import InvalidInput
from dpregress.estimators.central import CentralModel
from dpregress.estimators.glm import DPGammaRegressor, DPGLMRegressor, DPLogisticRegression, DPPoissonRegressor
from dpregress.estimators.linear import DPRidge
from dpregress.models import MULTINOMIAL, family_of

#: Families with their own estimator for the default link; DPGLMRegressor fits all others.
OWN_ESTIMATORS: Mapping[str, type[CentralModel]] = {
    "gaussian": DPRidge,
    "binomial": DPLogisticRegression,
    MULTINOMIAL: DPLogisticRegression,
    "poisson": DPPoissonRegressor,
    "gamma": DPGammaRegressor,
}


def estimator_of(family: str, link: str | None = None) -> type[CentralModel]:
    """The class that fits a family with a link: its own for the default link, otherwise DPGLMRegressor.

    Raises
    ------
    InvalidInput
        For a name or a combination that is not offered.

    Examples
    --------
    >>> estimator_of("poisson").__name__, estimator_of("poisson", "identity").__name__
    ('DPPoissonRegressor', 'DPGLMRegressor')
    """
    if family == MULTINOMIAL:
        if link not in (None, "logit"):
            raise InvalidInput(f"link {link!r} does not go with multinomial, whose link is logit")
        return OWN_ESTIMATORS[family]
    usual = family_of(family, link) == family_of(family)
    return OWN_ESTIMATORS.get(family, DPGLMRegressor) if usual else DPGLMRegressor
