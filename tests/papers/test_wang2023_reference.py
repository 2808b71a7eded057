"""Wang et al. (2023) against a reference written from the paper's listings, draw for draw."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpregress.papers import wang2023
from tests.reference import wang2023 as naive

N, ORDER, EPSILON, DELTA = 300, 3, 1e4, 1e-5


class Recording(np.random.Generator):
    """A generator that keeps every normal draw with its scale."""

    def __init__(self, seed: int) -> None:
        super().__init__(np.random.PCG64(seed))
        self.drawn: list[tuple[float, Any]] = []

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        draw = self.standard_normal(size)
        self.drawn.append((float(scale), draw))
        return loc + scale * draw


def _data(seed: int, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, X_public = rng.normal(size=(N, ORDER)) * scale, rng.normal(size=(80, ORDER)) * scale
    return X, 1 / (1 + np.exp(-X @ [0.6, -0.5, 0.4])) + 0.01 * rng.normal(size=N), X_public


def _bounded(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, y, X_public = _data(seed)
    return np.sign(X) / ORDER, y, np.sign(X_public) / ORDER


def _of_users(draw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The noise of the sum of all users, ``sqrt(n)`` of one draw, as if the first user had drawn all of it."""
    xx, xy = np.zeros((N, ORDER, ORDER)), np.zeros((N, ORDER))
    xx[0][np.triu_indices(ORDER)] = np.sqrt(N) * draw[:-ORDER]
    xy[0] = np.sqrt(N) * draw[-ORDER:]
    return xx, xy


def _agree(found: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("loss", ["logistic", "boosting", "exponential"])
@pytest.mark.parametrize("seed", [0, 1])
def test_algorithms_1_and_2_with_the_same_noise(loss: str, seed: int) -> None:
    for data, name, radius in ((_data(seed), "gaussian_glm", {}), (_bounded(seed), "bounded_glm", {"radius": 1.0})):
        rng = Recording(seed)
        found = getattr(wang2023, name)(*data, loss=loss, epsilon=EPSILON, delta=DELTA, rng=rng, **radius)
        noise = _of_users(rng.drawn[0][1])
        terms = {"epsilon": EPSILON, "delta": DELTA, "pooled": False, **radius}
        _agree(found, getattr(naive, name)(*data, loss, *noise, **terms)[0])


@pytest.mark.parametrize("link", ["sigmoid", "cubic"])
@pytest.mark.parametrize("seed", [0, 1])
def test_algorithms_3_and_4_with_the_same_noise(link: str, seed: int) -> None:
    for data, name, radius in (
        (_data(seed), "gaussian_nonlinear", {}),
        (_bounded(seed), "bounded_nonlinear", {"radius": 1.0}),
    ):
        rng, epsilon = Recording(seed), 1e7
        terms = {"noise_bound": 0.05, "epsilon": epsilon, "delta": DELTA, **radius}
        found = getattr(wang2023, name)(*data, link=link, rng=rng, **terms)
        noise = _of_users(rng.drawn[0][1])
        _agree(found, getattr(naive, name)(*data, link, *noise, pooled=False, **terms)[0])


@pytest.mark.parametrize("loss", ["logistic", "boosting"])
def test_algorithm_5_with_the_same_noise(loss: str) -> None:
    X, y, _ = _data(3)
    rng = Recording(3)
    terms = {"covariance_norm": 1.0, "epsilon": EPSILON, "delta": DELTA}
    found = wang2023.two_round_glm(X, y, loss=loss, rng=rng, **terms)
    noise = _of_users(rng.drawn[0][1])
    _agree(found, naive.two_round_glm(X, y, loss, *noise, rng.drawn[1][1], **terms)[0])


@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 20.0])
@pytest.mark.filterwarnings("ignore:Stein's equation")
def test_the_printed_scales(scale: float, epsilon: float) -> None:
    X, y, X_public = _data(5, scale)
    radius = naive.gaussian_radius(N, ORDER, naive.public_norm(X_public), 20.0)
    rng = Recording(0)
    wang2023.gaussian_glm(X, y, X_public, loss="logistic", epsilon=epsilon, delta=DELTA, rng=rng)
    assert rng.drawn[0][0] == pytest.approx(np.sqrt(N) * naive.one_round_scales(radius, epsilon, DELTA)[0], rel=1e-10)

    rng = Recording(0)
    wang2023.two_round_glm(X, y, loss="logistic", covariance_norm=2.0, epsilon=epsilon, delta=DELTA, rng=rng)
    radius = naive.gaussian_radius(N, ORDER, 2.0, 10.0)
    first, _, second = naive.two_round_scales(radius, epsilon, DELTA)
    assert [scale for scale, _ in rng.drawn] == pytest.approx([np.sqrt(N) * first, second], rel=1e-10)


@pytest.mark.parametrize("link", ["sigmoid", "cubic", "log1pexp"])
@pytest.mark.filterwarnings("ignore:Stein's equation")
def test_the_printed_response_bound(link: str) -> None:
    # the library takes the steepest slope within the radius, the reference over the line: equal but for log(1 + e^-z)
    X, y, X_public = _bounded(7)
    rng, radius = Recording(0), 1.7
    wang2023.bounded_nonlinear(
        X, 100 * y, X_public, link=link, noise_bound=0.05, radius=radius, epsilon=1.0, delta=DELTA, rng=rng
    )
    assert rng.drawn[0][0] == pytest.approx(np.sqrt(N) * naive.one_round_scales(radius, 1.0, DELTA)[0], rel=1e-10)
    library = wang2023._response_bound(wang2023.LINKS[link], radius, 0.05)
    printed = naive.response_bound({"log1pexp": "softplus"}.get(link, link), radius, 0.05)
    steepest = 1 / (1 + np.exp(-radius)) if link == "log1pexp" else None
    expected = printed if steepest is None else printed - (1 - steepest) * radius
    assert library == pytest.approx(expected, rel=1e-9)
