r"""Cao, Bi, Zhang (2026): public-moment-guided truncation, with the paper's constants.

Releases have the published sensitivity (2 R^2 for second moments) and the published layout (noise of one scale on and
above the diagonal). ``mu`` is that of the paper, so that the ridge and logistic fits cost ``sqrt(2) mu`` in total. At
the same privacy, the library's own recipe has a tenth of the error
(:class:`~dpregress.solvers.OneShot`).
"""

from __future__ import annotations

import math

import numpy as np

from dpregress.accounting import GDP, split
from dpregress.coordinates import Matrix, ResponseScale, Vector, Weighting, WhitenedSpace
from dpregress.errors import InvalidInput
from dpregress.mechanisms import SeededSampler
from dpregress.models import BinomialFamily, Family, GaussianFamily
from dpregress.public import PublicMoments
from dpregress.queries import Ask, ClippedGradient, ClippedScore, PublishedHessian
from dpregress.rows import ArraySource, PrivateRows, RawRows, WhitenedRows
from dpregress.solvers import Solution, Solver
from dpregress.trust import Session


def pmt(X: Matrix, public_second_moment: Matrix, eta: float) -> tuple[Matrix, Matrix, float]:
    r"""Algorithm 1: whiten by ``W = S^{-1/2}`` and scale rows into the ball of ``R = sqrt(d (1 + log(2n/eta)))``.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    public_second_moment : ndarray of shape (d, d)
        Raw second moment of public rows.
    eta : float
        In (0, 1): with probability 1 - eta no row of a well-behaved sample is truncated.

    Returns
    -------
    X_tilde : ndarray of shape (n, d)
    whitening : ndarray of shape (d, d)
    radius : float

    Examples
    --------
    >>> X_tilde, W, R = pmt(np.array([[3.0, 0.0], [100.0, 0.0]]), np.eye(2), eta=0.5)
    >>> np.linalg.norm(X_tilde, axis=1).round(3).tolist(), round(R, 3)
    ([2.482, 2.482], 2.482)
    """
    space = _pmt_space(PublicMoments.from_matrix(public_second_moment, n=1), len(X), eta)
    bounded = WhitenedRows(space)(RawRows(np.asarray(X, dtype=np.float64), None))
    return bounded.x, space.whitening, space.radius


def pmt_ridge(
    X: Matrix, y: Vector, X_public: Matrix, y_public: Vector, *, mu: float, alpha: float, eta: float,
    rng: np.random.Generator,
) -> Vector:  # fmt: skip
    r"""Algorithm 2, DP-PMTRR: ridge on noisy whitened moments.

    ``b~ = (X~'X~/n + alpha S^{-1} + G)^{-1} (X~'y~/n + g)``, entries of G (on and above the diagonal) and g of
    scale ``2 R^2 / (mu n)`` and ``2 R C / (mu n)``; returned as ``s W b~``.

    Parameters
    ----------
    X, y : ndarray of shape (n, d) and (n,)
        Private.
    X_public, y_public : ndarray of shape (m, d) and (m,)
        The labels determine one scale, ``s = sqrt(mean y^2)``.
    mu : float
        Each of the two releases is mu-GDP: sqrt(2) mu in total.
    alpha : float
        The paper's lambda, on the scale of ``X'X / n``.
    eta : float
    rng : numpy.random.Generator

    Returns
    -------
    coef : ndarray of shape (d,)
        In the original space.
    """
    public = PublicMoments.from_rows(X_public, y_public)
    space = published_space(public, len(X), eta)
    return _fit(X, y, PublishedRidge(space, GDP(math.sqrt(2) * mu), alpha), mu * math.sqrt(2), rng)


def private_only_ridge(
    X: Matrix, y: Vector, *, second_moment: Matrix, coef_norm: float, mu: float, alpha: float, eta: float,
    rng: np.random.Generator,
) -> Vector:  # fmt: skip
    r"""DP-RR, the paper's baseline without public data. **An oracle, not differentially private.**

    Rows are truncated at ``R = sqrt(Tr(Sigma) + d log(n/eta))`` and y at ``R ||beta||``, both of which are
    known only from the private data itself.

    Parameters
    ----------
    X, y : ndarray of shape (n, d) and (n,)
    second_moment : ndarray of shape (d, d)
        The true second moment; its trace is used.
    coef_norm : float
        The norm of the true coefficients.
    mu, alpha, eta, rng
        As in :func:`pmt_ridge`.
    """
    space = _oracle_space(second_moment, len(X), eta)
    space = space.with_response(ResponseScale("y", bound=space.radius * coef_norm))
    return _fit(X, y, PublishedRidge(space, GDP(math.sqrt(2) * mu), alpha), mu * math.sqrt(2), rng)


def pmt_logistic(
    X: Matrix, y: Vector, X_public: Matrix, *, mu: float, alpha: float, eta: float, steps: int,
    rng: np.random.Generator,
) -> Matrix:  # fmt: skip
    r"""Algorithm 3, DP-PMTLR: exactly ``steps`` noisy Newton steps from 0 on the penalised log-likelihood.

    ``-(1/n) sum [y x~'b - log(1 + exp(x~'b))] + alpha/2 ||W b||^2``; each step's Hessian and gradient have noise
    ``sqrt(T) R^2 / (2 mu n)`` and ``2 sqrt(T) R / (mu n)``. The noisy Hessian is not repaired, as published:
    at small n mu the steps can diverge.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,)
        0 or 1.
    X_public : ndarray of shape (m, d)
    mu, alpha, eta, rng
        As in :func:`pmt_ridge`; sqrt(2) mu in total.
    steps : int

    Returns
    -------
    coef : ndarray of shape (steps, d)
        After every step, in the original space.
    """
    space = _pmt_space(PublicMoments.from_rows(X_public), len(X), eta)
    return _newton_logistic(X, y, space, mu=mu, alpha=alpha, steps=steps, rng=rng)


def pmt_glm(
    X: Matrix, y: Vector, X_public: Matrix, *, family: Family, mu: float, alpha: float, eta: float, steps: int,
    response_bound: float, coef_bound: float, rng: np.random.Generator,
) -> Matrix:  # fmt: skip
    r"""Algorithm 4, DP-PMTGLM: noisy Newton steps for a canonical link, with the projection its privacy needs.

    ``M1 = max |b'(z)|`` and ``M2 = max b''(z)`` over ``|z| <= Rb R``; each step's Hessian and gradient have noise
    ``2 sqrt(T) R^2 M2 / (mu n)`` and ``2 sqrt(T) R (Ry + M1) / (mu n)``. M1 and M2 are bounds only for coefficients
    in the ball of radius Rb. The published listing never projects onto this ball; this function does so after each
    step.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,)
        Clipped to ``[-response_bound, response_bound]``.
    X_public : ndarray of shape (m, d)
    family : Family
        ``GaussianFamily``, ``BinomialFamily`` or ``PoissonFamily`` of :mod:`dpregress.models`.
    mu, alpha, eta, steps, rng
        As in :func:`pmt_logistic`; sqrt(2) mu in total.
    response_bound, coef_bound : float
        Ry, and Rb in the whitened space; public.

    Returns
    -------
    coef : ndarray of shape (steps, d)
        After every step, in the original space.
    """
    for name, bound in (("response_bound", response_bound), ("coef_bound", coef_bound)):
        if not (math.isfinite(bound) and bound > 0):
            raise InvalidInput(f"{name} must be positive and finite, not {bound}")
    space = _pmt_space(PublicMoments.from_rows(X_public), len(X), eta)
    reach = np.array([-1.0, 1.0]) * coef_bound * space.radius
    # b' is monotone and b'' of these families largest at 0 or at an end of the interval
    largest_mean = float(np.abs(family.mean(reach)).max())
    largest = float(family.information(np.array([*reach, 0.0])).max())
    return _newton(
        X, y, space, family=family, response_bound=response_bound, clip=response_bound + largest_mean,
        largest=largest, coef_bound=coef_bound, mu=mu, alpha=alpha, steps=steps, rng=rng,
    )  # fmt: skip


def private_only_logistic(
    X: Matrix, y: Vector, *, second_moment: Matrix, mu: float, alpha: float, eta: float, steps: int,
    rng: np.random.Generator,
) -> Matrix:  # fmt: skip
    r"""Algorithm 5, DP-LR: Algorithm 3 without whitening. **An oracle, not differentially private.**

    Rows are truncated at ``R = sqrt(Tr(Sigma) + d log(n/eta))``, known only from the private data itself.

    Parameters
    ----------
    X, y : ndarray of shape (n, d) and (n,)
    second_moment : ndarray of shape (d, d)
    mu, alpha, eta, steps, rng
        As in :func:`pmt_logistic`.
    """
    return _newton_logistic(X, y, _oracle_space(second_moment, len(X), eta), mu=mu, alpha=alpha, steps=steps, rng=rng)


def gradient_descent(
    X: Matrix, y: Vector, *, mu: float, steps: int, clip: float, rate: float, rng: np.random.Generator
) -> Vector:
    r"""DP-GD, the paper's first-order baseline: noisy descent on per-row clipped gradients, from 0.

    ``b += rate (mean clip(x (y - x'b)) + N(0, (2 clip sqrt(T) / (mu n))^2 I))``; mu is the total of all steps.

    Parameters
    ----------
    X, y : ndarray of shape (n, d) and (n,)
    mu : float
        The budget of the whole run.
    steps : int
    clip : float
        The bound on the norm of each row's gradient.
    rate : float
    rng : numpy.random.Generator

    Returns
    -------
    coef : ndarray of shape (d,)
        The last iterate.

    References
    ----------
    Avella-Medina, Bradshaw, Loh (2023), Algorithm 1.
    """
    order = X.shape[1]
    space = _plain_space(order, math.inf).with_response(ResponseScale("y"))
    ask = _session(X, y, space, mu, rng)
    each = split(GDP(mu), [1.0] * steps)
    coef = np.zeros(order)
    for spend in each:
        coef = coef + rate * ask(ClippedGradient(space, GaussianFamily, coef, clip), spend).mean
    return coef


class PublishedRidge(Solver):
    """Algorithm 2 on a given space: a noisy Gram matrix and a noisy cross moment at half of mu^2 each.

    Parameters
    ----------
    space : WhitenedSpace
        With a response.
    budget : GDP
        The total.
    alpha : float
        The paper's lambda.
    """

    def __init__(self, space: WhitenedSpace, budget: GDP, alpha: float) -> None:
        _check_alpha(alpha)
        self.space = space
        self.alpha = alpha
        self._gram, self._cross = split(budget, [1, 1])

    @property
    def rounds(self) -> int:
        return 2

    def solve(self, ask: Ask) -> Solution:
        assert self.space.response is not None
        zero = np.zeros(self.space.order)
        gram = ask(PublishedHessian(self.space, GaussianFamily, zero, largest=1.0), self._gram).gram
        cross = ask(ClippedScore(self.space, GaussianFamily, zero, self.space.response.bound), self._cross).mean
        slopes = self.space.slopes
        system = gram + self.alpha * slopes @ slopes.T
        return Solution(np.asarray(np.linalg.solve(system, cross)), system, self.space, None)


def published_space(public: PublicMoments, n: int, eta: float, *, intercept: bool = False) -> WhitenedSpace:
    """The space of Algorithm 2: y is divided by the public root mean square, and truncated as a row with d = 1."""
    if public.labels is None:
        raise InvalidInput("the published recipe scales y by public labels: give y= with the public rows")
    scale = float(np.sqrt(np.mean(public.labels**2)))
    bound = math.sqrt(1 + _log(2 * n, eta))
    space = _pmt_space(public, n, eta, intercept=intercept)
    return space.with_response(ResponseScale("y", scale=scale or 1.0, bound=bound))


def _pmt_space(public: PublicMoments, n: int, eta: float, *, intercept: bool = False) -> WhitenedSpace:
    """``W = S^{-1/2}``, the symmetric root, of the raw second moment (of ``(1, x)`` with an intercept)."""
    values, vectors = np.linalg.eigh(public.augmented(intercept))
    if values[0] <= len(values) * np.finfo(float).eps * values[-1]:
        raise InvalidInput("the public second moment is singular: the paper needs more public rows than columns")
    whitening = (vectors / np.sqrt(values)) @ vectors.T
    mean = np.zeros(len(public.names)) if public.mean is None else public.mean
    radius = math.sqrt(len(whitening) * (1 + _log(2 * n, eta)))
    return WhitenedSpace(public.names, whitening, radius, mean, intercept, weighting=Weighting.FEATURES)


def _oracle_space(second_moment: Matrix, n: int, eta: float) -> WhitenedSpace:
    public = PublicMoments.from_matrix(second_moment, n=n)  # its checks: square, symmetric, finite
    if np.linalg.eigvalsh(public.second)[0] < -1e-9 * np.trace(np.abs(public.second)):
        raise InvalidInput("a second moment must not have negative eigenvalues")
    order = len(public.names)
    return _plain_space(order, math.sqrt(float(np.trace(public.second)) + order * _log(n, eta)))


def _plain_space(order: int, radius: float) -> WhitenedSpace:
    names = tuple(f"x{i}" for i in range(order))
    return WhitenedSpace(names, np.eye(order), radius, np.zeros(order), weighting=Weighting.FEATURES)


def _log(n: int, eta: float) -> float:
    """``log(n / eta)``, the constant of every radius."""
    if not 0 < eta < 1:
        raise InvalidInput(f"eta must lie between 0 and 1, not {eta}: the paper uses 0.05 and 1e-3")
    return math.log(n / eta)


def _check_alpha(alpha: float) -> None:
    if not (math.isfinite(alpha) and alpha >= 0):
        raise InvalidInput(f"alpha must be finite and not negative, not {alpha}")


def _session(X: Matrix, y: Vector, space: WhitenedSpace, mu: float, rng: np.random.Generator) -> Session:
    """A session with a curator, a seeded sampler and a budget of exactly mu."""
    if np.shape(X)[1:] != (len(space.features),):
        raise InvalidInput(f"X must have shape (n, {len(space.features)}), as the public moment has")
    source = ArraySource(np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64))
    return Session.reserve(PrivateRows(source), GDP(mu), sampler=SeededSampler(rng))


def _fit(X: Matrix, y: Vector, solver: PublishedRidge, mu: float, rng: np.random.Generator) -> Vector:
    solution = solver.solve(_session(X, y, solver.space, mu, rng))
    return solution.space.pull_back(solution.whitened)[0]


def _newton_logistic(
    X: Matrix, y: Vector, space: WhitenedSpace, *, mu: float, alpha: float, steps: int, rng: np.random.Generator
) -> Matrix:
    """Newton with the constants of Algorithm 3: ``b'' <= 1/4`` and ``|y - b'| <= 1`` everywhere."""
    return _newton(
        X, y, space, family=BinomialFamily, response_bound=1.0, clip=1.0, largest=0.25, coef_bound=math.inf,
        mu=mu, alpha=alpha, steps=steps, rng=rng,
    )  # fmt: skip


def _newton(
    X: Matrix, y: Vector, space: WhitenedSpace, *, family: Family, response_bound: float, clip: float, largest: float,
    coef_bound: float, mu: float, alpha: float, steps: int, rng: np.random.Generator,
) -> Matrix:  # fmt: skip
    """Noisy Newton steps from 0, each projected onto the ball of radius ``coef_bound`` in whitened space."""
    _check_alpha(alpha)
    space = space.with_response(ResponseScale("y", bound=response_bound))
    ask = _session(X, y, space, math.sqrt(2) * mu, rng)
    penalty = alpha * space.slopes @ space.slopes.T
    coef = np.zeros(space.order)
    iterates = np.empty((steps, space.order))
    for step, spend in enumerate(split(GDP(mu), [1.0] * steps)):
        hessian = ask(PublishedHessian(space, family, coef, largest), spend).gram + penalty
        score = ask(ClippedScore(space, family, coef, clip), spend).mean - penalty @ coef
        coef = coef + np.linalg.solve(hessian, score)
        coef = coef * min(1.0, coef_bound / max(float(np.linalg.norm(coef)), 1e-300))
        iterates[step] = space.pull_back(coef)[0]
    return iterates
