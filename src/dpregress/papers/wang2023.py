r"""Wang, Hu, Zhang, Gaboardi, Xu (2023): generalised linear models under local privacy, with public unlabelled rows.

Every user sends a noisy ``x x'`` and ``x y`` once; the server solves ``w_ols = (sum xx')^{-1} sum xy`` and scales it by
Stein's constant, sought on public rows. ``calibration="classical"`` has the printed noise,
``Delta sqrt(2 log(2.5/delta)) / (eps/2)`` on each part with the printed sensitivities: a theorem for epsilon <= 1 only.
``"analytic"`` is exactly (epsilon, delta)-DP for every epsilon. With the printed radii and the paper's sample sizes,
the error is about that of estimating 0; :class:`~dpregress.estimators.LocalGLM` is the library's own method
(docs/methods/local.md).
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from dpregress.accounting import GDP, ApproxDP, split
from dpregress.accounting.classical import classical_mu
from dpregress.coordinates import Matrix, ResponseScale, Vector, Weighting, WhitenedSpace
from dpregress.errors import InvalidInput
from dpregress.mechanisms import SeededSampler
from dpregress.models.mean_responses import LINKS, LOSSES, MeanResponse, mean_response
from dpregress.public import PublicMoments
from dpregress.queries import Predictions, PublishedMoments
from dpregress.rows import ArraySource, PrivateRows
from dpregress.solvers.shared.stein import scaled_coefficients
from dpregress.trust import Local, Session, TwoRounds

Calibration = Literal["classical", "analytic"]


def gaussian_glm(
    X: Matrix, y: Vector, X_public: Matrix, *, loss: str | MeanResponse, epsilon: float, delta: float,
    rng: np.random.Generator, calibration: Calibration = "classical",
) -> Vector:  # fmt: skip
    r"""Algorithm 1: rows from N(0, Sigma) are clipped at ``r = sqrt(20 d ||S||_2 log n)``, S the public second moment.

    The sums over users carry noise of variance ``32 n r^4 log(2.5/delta)/eps^2`` on and above the diagonal of
    ``sum xx'``, and ``32 n r^2 log(2.5/delta)/eps^2`` on ``sum xy``.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Private.
    y : ndarray of shape (n,)
        Private; clipped to [-1, 1].
    X_public : ndarray of shape (m, d)
    loss : {"logistic", "boosting", "exponential", "squared"} or MeanResponse
    epsilon, delta : float
    rng : numpy.random.Generator
    calibration : {"classical", "analytic"}
        The printed constants, or the exact ones.

    Returns
    -------
    coef : ndarray of shape (d,)

    Warns
    -----
    NoScaleWarning
        If Stein's equation has no root, so that the rule of :func:`~dpregress.solvers.shared.stein.stein_scale`
        determines the scale.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50_000, 2)); y = 1 / (1 + np.exp(-X @ [0.6, 0.8]))
    >>> coef = gaussian_glm(X, y, X[:500], loss="logistic", epsilon=400.0, delta=1e-6, rng=rng)
    >>> bool(np.abs(coef - [0.6, 0.8]).max() < 0.2)
    True
    """
    response, radius = mean_response(loss, LOSSES), _published_radius(X, X_public)
    return _one_round(X, y, X_public, response, radius, 1.0, epsilon, delta, rng, calibration)


def bounded_glm(
    X: Matrix, y: Vector, X_public: Matrix, *, loss: str | MeanResponse, radius: float, epsilon: float, delta: float,
    rng: np.random.Generator, calibration: Calibration = "classical",
) -> Vector:  # fmt: skip
    r"""Algorithm 2: as Algorithm 1 for rows with ``||x||_1 <= radius``, kept in the l2 ball of that radius.

    Parameters
    ----------
    X, y, X_public, loss, epsilon, delta, rng, calibration
        As in :func:`gaussian_glm`. The paper's exponential experiment has y up to e, beyond the 1 that its
        algorithm needs: such y are clipped, so rescale them first.
    radius : float
        Public.
    """
    return _one_round(X, y, X_public, mean_response(loss, LOSSES), radius, 1.0, epsilon, delta, rng, calibration)


def gaussian_nonlinear(
    X: Matrix, y: Vector, X_public: Matrix, *, link: str | MeanResponse, noise_bound: float,
    epsilon: float, delta: float, rng: np.random.Generator, calibration: Calibration = "classical",
) -> Vector:  # fmt: skip
    r"""Algorithm 3: ``y = f(x'w) + noise`` with ``|noise| <= C`` and ``||w|| <= 1``, normal x.

    y is clipped to ``L r + |f(0)| + C``, as the published proof assumes; L is the largest
    ``|f'(z)|`` for ``|z| <= r``.

    Parameters
    ----------
    X, y, X_public, epsilon, delta, rng, calibration
        As in :func:`gaussian_glm`; y of any size.
    link : {"sigmoid", "cubic", "log1pexp"} or MeanResponse
        f; "log1pexp" is ``log(1 + e^-z)``.
    noise_bound : float
        C.
    """
    response, radius = mean_response(link, LINKS), _published_radius(X, X_public)
    bound = _response_bound(response, radius, noise_bound)
    return _one_round(X, y, X_public, response, radius, bound, epsilon, delta, rng, calibration)


def bounded_nonlinear(
    X: Matrix, y: Vector, X_public: Matrix, *, link: str | MeanResponse, noise_bound: float, radius: float,
    epsilon: float, delta: float, rng: np.random.Generator, calibration: Calibration = "classical",
) -> Vector:  # fmt: skip
    r"""Algorithm 4: as Algorithm 3 for rows with ``||x||_1 <= radius``.

    Parameters
    ----------
    X, y, X_public, link, noise_bound, epsilon, delta, rng, calibration
        As in :func:`gaussian_nonlinear`.
    radius : float
        Public.
    """
    response = mean_response(link, LINKS)
    bound = _response_bound(response, _checked(radius, "radius"), noise_bound)
    return _one_round(X, y, X_public, response, radius, bound, epsilon, delta, rng, calibration)


def two_round_glm(
    X: Matrix, y: Vector, *, loss: str | MeanResponse, covariance_norm: float, epsilon: float, delta: float,
    rng: np.random.Generator, calibration: Calibration = "classical",
) -> Vector:  # fmt: skip
    r"""Algorithm 5: no public rows; users answer a second time, with a noisy prediction each.

    Round one is Algorithm 1 with ``r = sqrt(10 d ||Sigma||_2 log n)`` and four times the noise variance. In round
    two every user sends ``clip(x'w_ols, 0, 1)`` with noise of variance ``8 log(2.5/delta)/eps^2``, from which
    Stein's constant is computed. The printed split uses delta/2 three times; a correct one would have log(5/delta).

    Parameters
    ----------
    X, y, loss, epsilon, delta, rng
        As in :func:`gaussian_glm`.
    covariance_norm : float
        ``||Sigma||_2``, public.
    calibration : {"classical", "analytic"}
        "analytic" spends half of mu squared on each round.

    Returns
    -------
    coef : ndarray of shape (d,)
    """
    response = mean_response(loss, LOSSES)
    n, order = np.shape(X)
    if calibration == "classical":
        first = GDP(math.sqrt(2) * classical_mu(epsilon / 4, delta / 2))
        second = GDP(classical_mu(epsilon / 2, delta / 2))
    else:
        first, second = split(GDP(_exact(epsilon, delta, calibration)), [1, 1])
    space = _space(order, math.sqrt(10 * order * _checked(covariance_norm, "covariance_norm") * math.log(n)), 1.0)
    source = ArraySource(np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64))
    ask = Session.reserve(PrivateRows(source), first + second, trust=TwoRounds(), rounds=2, sampler=SeededSampler(rng))
    coef = _least_squares(ask, space, first)
    predictions = ask(Predictions(space, coef, n), second).total
    return scaled_coefficients(response.slope, predictions, coef)


def _one_round(
    X: Matrix, y: Vector, X_public: Matrix, response: MeanResponse, radius: float, bound: float, epsilon: float,
    delta: float, rng: np.random.Generator, calibration: Calibration,
) -> Vector:  # fmt: skip
    """One message from each user, then Stein's constant from the public rows."""
    public = PublicMoments.from_rows(X_public)
    space = _space(len(public.names), _checked(radius, "radius"), bound)
    if np.shape(X)[1:] != (space.order,):
        raise InvalidInput(f"X must have shape (n, {space.order}), as the public rows have")
    if calibration == "classical":
        spend = GDP(math.sqrt(2) * classical_mu(epsilon / 2, delta / 2))
    else:
        spend = GDP(_exact(epsilon, delta, calibration))
    source = ArraySource(np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64))
    ask = Session.reserve(PrivateRows(source), spend, trust=Local(), sampler=SeededSampler(rng))
    coef = _least_squares(ask, space, spend)
    assert public.rows is not None
    return scaled_coefficients(response.slope, public.rows @ coef, coef)


def _least_squares(ask: Session, space: WhitenedSpace, spend: GDP) -> Vector:
    """The published solution, without repair of the noisy matrix."""
    query = PublishedMoments(space)
    gram, cross = query.parts(ask(query, spend))
    return np.asarray(np.linalg.lstsq(gram, cross, rcond=None)[0])


def _exact(epsilon: float, delta: float, calibration: str) -> float:
    if calibration != "analytic":
        raise InvalidInput(f'calibration must be "classical" or "analytic", not {calibration!r}')
    return ApproxDP(epsilon, delta).gaussian_mu


def _space(order: int, radius: float, bound: float) -> WhitenedSpace:
    """Rows that are not whitened, in the ball of radius ``radius``; y is clipped and not weighted."""
    names = tuple(f"x{i}" for i in range(order))
    response = ResponseScale("y", bound=bound)
    return WhitenedSpace(names, np.eye(order), radius, np.zeros(order), response=response, weighting=Weighting.FEATURES)


def _published_radius(X: Matrix, X_public: Matrix) -> float:
    """``sqrt(20 d ||S||_2 log n)``."""
    public = PublicMoments.from_rows(X_public)
    largest = float(np.linalg.eigvalsh(public.second)[-1])
    return math.sqrt(20 * len(public.names) * largest * math.log(max(len(X), 2)))


def _response_bound(response: MeanResponse, radius: float, noise_bound: float) -> float:
    """``L r + |f(0)| + C``."""
    if not (math.isfinite(noise_bound) and noise_bound >= 0):
        raise InvalidInput(f"noise_bound must be finite and not negative, not {noise_bound}")
    at_zero = abs(float(response.mean(np.zeros(1))[0]))
    return response.steepest(radius) * radius + at_zero + noise_bound


def _checked(value: float, name: str) -> float:
    if not (math.isfinite(value) and value > 0):
        raise InvalidInput(f"{name} must be positive and finite, not {value}")
    return float(value)
