"""Fisher scoring reaches the maximum of the likelihood, where the model is wrong too."""

import numpy as np
import pytest
from scipy.optimize import minimize

from dpregress.coordinates import Matrix, Vector
from dpregress.models import Family, family_of
from dpregress.solvers.shared import scoring
from dpregress.solvers.shared.scoring import fisher_scoring, penalised_scoring

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


@pytest.mark.parametrize("family", ["binomial", "gamma"])
def test_several_penalties_at_once_are_each_by_itself(family: str, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Also where few of them are held at once, and where one leaves directions without information."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(80, 4))
    x[:, 3] = x[:, 2]
    y = rng.gamma(2.0, size=80) if family == "gamma" else rng.integers(2, size=80).astype(float)
    model, start = family_of(family), np.array([0.1, 0.0, 0.0, 0.0])
    penalties = np.stack([np.zeros((4, 4)), np.eye(4), np.diag([0.0, 1.0, 1.0, 1.0]), 1e4 * np.eye(4)])
    begin = start + 0.1 * rng.normal(size=(4, 4))
    begin[0] = start
    expected = np.stack([fisher_scoring(x, y, model, start, penalty=penalty) for penalty in penalties])
    for held in (2**20, 2 * len(x)):
        monkeypatch.setattr(scoring, "_PREDICTORS", held)
        found = penalised_scoring(x, y, model, start, penalties, np.zeros(80), begin)
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)
