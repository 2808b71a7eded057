"""Fisher scoring reaches the maximum of the likelihood, where the model is wrong too."""

import numpy as np
import pytest
from scipy.optimize import minimize

from dpregress.coordinates import Matrix, Vector
from dpregress.models import Family, family_of
from dpregress.solvers.shared.scoring import fisher_scoring

FAMILIES = [("gamma", "log"), ("poisson", "log"), ("binomial", "probit"), ("inverse-gaussian", "log")]


def _valley(rng: np.random.Generator, family: Family) -> tuple[Matrix, Vector]:
    """Responses that are large at both ends of a column: observed information is several times the expected one."""
    x = rng.normal(size=(600, 2))
    mean = 0.2 + x[:, 0] ** 4 + 0.3 * x[:, 1] ** 2
    if family.distribution.name == "binomial":
        return x, (rng.random(len(x)) < np.minimum(mean / 3, 0.95)).astype(float)
    return x, np.maximum(rng.poisson(mean) if family.distribution.name == "poisson" else mean, 0.01 * mean)


def test_a_row_beyond_the_end_of_a_link_does_not_stop_all(seed: int) -> None:
    """Slopes of an identity link have no limit there: of a step that leads so far, no less than a part is made."""
    rng, family = np.random.default_rng(seed), family_of("poisson", "identity")
    design = np.column_stack([np.ones(300), rng.lognormal(0, 1.3, 300), rng.normal(size=(300, 2))])
    y = rng.poisson(0.3 + np.abs(design @ np.array([0.5, 0.4, -0.3, 0.2]))).astype(float)
    start, penalty = np.array([y.mean() + 0.2, 0.0, 0.0, 0.0]), np.diag([0.0, 100.0, 100.0, 100.0])
    found = fisher_scoring(design, y, family, start, penalty=penalty)
    eta = design @ found
    score = design.T @ ((y - family.mean(eta)) * family.factor(eta)) - penalty @ (found - start)
    information = (design * family.information(eta)[:, None]).T @ design + penalty
    assert float(score @ np.linalg.solve(information, score)) < 1e-9


@pytest.mark.parametrize(("name", "link"), FAMILIES)
def test_scoring_reaches_the_maximum(name: str, link: str, seed: int) -> None:
    """Against quasi-Newton steps on the deviance; with a penalty too."""
    family = family_of(name, link)
    x, y = _valley(np.random.default_rng(seed), family)
    design = np.column_stack([np.ones(len(x)), x])
    start = np.array([family.link.predictor(float(y.mean())), 0.0, 0.0])
    for penalty in (np.zeros((3, 3)), np.diag([0.0, 5.0, 5.0])):

        def loss(coef: Vector, penalty: Matrix = penalty) -> float:
            deviance = family.distribution.unit_deviance(y, family.mean(design @ coef)).sum()
            return float(deviance / 2 + (coef - start) @ penalty @ (coef - start) / 2)

        wanted = minimize(loss, start, method="BFGS", options={"gtol": 1e-6}).x
        found = fisher_scoring(design, y, family, start, penalty=penalty)
        assert loss(found) <= loss(wanted) + 1e-9 * abs(loss(wanted))
        np.testing.assert_allclose(found, wanted, atol=1e-4)
