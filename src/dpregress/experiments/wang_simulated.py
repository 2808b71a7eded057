"""Wang et al. (2023), Figures 1-14, 17 and 18: local privacy on simulated rows, by algorithm and design.

Figures come in pairs: against n at three dimensions; then against n at one epsilon for all dimensions, and against the
number of public rows. Rows, coefficients and noise are those of the paper's section 6.1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpregress.accounting import ApproxDP
from dpregress.coordinates import Matrix, Vector
from dpregress.estimators import LocalGLM
from dpregress.experiments.base import DEFAULT, PLAIN, TRIVIAL, Claim, Experiment, Panel, Reading, settings_of
from dpregress.experiments.findings import below, changes, flat, orders, slope_near
from dpregress.models.mean_responses import LINKS, LOSSES, MeanResponse
from dpregress.papers import wang2023
from dpregress.public import PublicMoments

PAPER = "Wang, Hu, Zhang, Gaboardi and Xu 2023"
#: The bound of the noise of labels in non-linear regressions.
NOISE = 0.05
_TWO_ROUNDS = "two rounds"
#: Responses up to e are divided by e, since Algorithm 2 needs them in [-1, 1].
_EXPONENTIAL = MeanResponse(
    "exponential, over e", lambda z: LOSSES["exponential"].mean(z - 1), lambda z: LOSSES["exponential"].slope(z - 1)
)


@dataclass(frozen=True)
class LocalModel:
    """An algorithm with its model and the bounds of y that are public."""

    algorithm: int
    response: MeanResponse
    design: str
    bounds: tuple[float, float]

    @property
    def name(self) -> str:
        """Of its curves."""
        return f"Algorithm {self.algorithm}"


_MODELS = {
    "logistic, diagonal": LocalModel(1, LOSSES["logistic"], "diagonal", (0.0, 1.0)),
    "logistic, non-diagonal": LocalModel(1, LOSSES["logistic"], "orthogonal", (0.0, 1.0)),
    "exponential, Bernoulli": LocalModel(2, _EXPONENTIAL, "Bernoulli", (math.exp(-2), 1.0)),
    "logistic, Bernoulli": LocalModel(2, LOSSES["logistic"], "Bernoulli", (0.0, 1.0)),
    "sigmoid, diagonal": LocalModel(3, LINKS["sigmoid"], "diagonal", (-NOISE, 1 + NOISE)),
    "cubic, Bernoulli": LocalModel(4, LINKS["cubic"], "Bernoulli", (-1 - NOISE, 1 + NOISE)),
    "log(1 + exp(-z)), Bernoulli": LocalModel(4, LINKS["log1pexp"], "Bernoulli", (0.31 - NOISE, 1.32 + NOISE)),
}


@dataclass(frozen=True)
class LocalSetting:
    """The rows of some points: one data set serves all epsilons.

    ``axis`` is what the x axis has: n, the number of public rows m, or epsilon.
    """

    model: str
    axis: str
    n: int
    d: int
    m: int
    epsilons: tuple[float, ...]
    two_rounds: bool = False


def local_panel(setting: LocalSetting) -> str:
    """Which plot a setting belongs to."""
    return (
        {
            "n": f"p = {setting.d}",
            "p": f"epsilon {setting.epsilons[0]:g}",
            "m": f"n = {setting.n:,}, p = {setting.d}",
            "epsilon": setting.model,
        }[setting.axis]
        if not setting.two_rounds
        else f"{setting.model}, p = {setting.d}"
    )


def _drawn(setting: LocalSetting, rng: np.random.Generator) -> tuple[Matrix, Vector, Matrix, Vector, float]:
    """Private rows and responses, public rows, the truth, and the largest eigenvalue of the rows' covariance."""
    model, d = _MODELS[setting.model], setting.d
    size = (setting.n + setting.m, d)
    if model.design == "Bernoulli":
        rows, largest = rng.choice([-1.0 / d, 1.0 / d], size=size), 1 / d**2
    else:
        covariance = rng.uniform() * np.eye(d)
        if model.design == "orthogonal":
            rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
            rotation[0] *= np.sign(np.linalg.det(rotation))  # with a reflection U + I is singular
            covariance = np.eye(d) + (rotation + rotation.T) / 2
        values, vectors = np.linalg.eigh(covariance)
        root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T  # eigenvalues come in pairs: no other is unique
        rows, largest = rng.normal(size=size) @ root, float(values[-1])
    w = rng.normal(size=d)
    w /= np.linalg.norm(w)
    x, public = rows[: setting.n], rows[setting.n :]
    y = model.response.mean(x @ w)
    if model.algorithm > 2:
        y = y + rng.uniform(-NOISE, NOISE, size=len(y))
    return x, y, public, w, largest


def _published(
    model: LocalModel, x: Matrix, y: Vector, public: Matrix, epsilon: float, rng: np.random.Generator
) -> Vector:
    """The algorithm with the printed constants."""
    shared: dict[str, Any] = {"epsilon": epsilon, "delta": len(x) ** -1.1, "rng": rng}
    if model.algorithm == 1:
        return wang2023.gaussian_glm(x, y, public, loss=model.response, **shared)
    if model.algorithm == 2:
        return wang2023.bounded_glm(x, y, public, loss=model.response, radius=1.0, **shared)
    if model.algorithm == 3:
        return wang2023.gaussian_nonlinear(x, y, public, link=model.response, noise_bound=NOISE, **shared)
    return wang2023.bounded_nonlinear(x, y, public, link=model.response, noise_bound=NOISE, radius=1.0, **shared)


def _two_rounds(
    model: LocalModel, x: Matrix, y: Vector, largest: float, epsilon: float, rng: np.random.Generator
) -> Vector:
    """Algorithm 5; Bernoulli rows are bounded by 1, which its radius is made to be."""
    n, d = x.shape
    norm = 1 / (10 * d * math.log(n)) if model.design == "Bernoulli" else largest
    return wang2023.two_round_glm(
        x, y, loss=model.response, covariance_norm=norm, epsilon=epsilon, delta=n**-1.1, rng=rng
    )


def least_squares_of(response: MeanResponse, x: Matrix, y: Vector) -> Vector:
    """Non-linear least squares by Gauss-Newton steps from the direction of linear least squares."""
    coef = np.linalg.lstsq(x.T @ x, x.T @ y, rcond=None)[0]
    coef = coef / np.linalg.norm(coef)
    for _ in range(8):
        z = x @ coef
        slopes = x * response.slope(z)[:, None]
        step = np.linalg.lstsq(slopes.T @ slopes, slopes.T @ (y - response.mean(z)), rcond=None)[0]
        coef = coef + step
        if np.linalg.norm(step) < 1e-9:
            break
    return np.asarray(coef)


def _error(design: str, coef: Vector, w: Vector) -> float:
    """Squared and relative, in l2 or, for Bernoulli rows, in the largest coordinate."""
    order = np.inf if design == "Bernoulli" else 2
    return float(np.linalg.norm(coef - w, order) ** 2 / np.linalg.norm(w, order) ** 2)


def _simulate(setting: LocalSetting, rng: np.random.Generator) -> Iterator[Reading]:
    model, panel = _MODELS[setting.model], local_panel(setting)
    x, y, public, w, largest = _drawn(setting, rng)
    moments = PublicMoments.from_rows(public)
    fixed = {"n": setting.n, "p": setting.n, "m": setting.m}
    for epsilon in setting.epsilons:
        line = {"p": f"p = {setting.d}", "epsilon": f"n = {setting.n:,}"}.get(setting.axis, f"epsilon {epsilon:g}")
        library = LocalGLM(
            ApproxDP(epsilon, setting.n**-1.1), family=model.response, public=moments, response_bounds=model.bounds,
            fit_intercept=False, random_state=rng,
        )  # fmt: skip
        fits = {
            model.name if setting.axis != "epsilon" else "published algorithm": _published(
                model, x, y, public, epsilon, rng
            ),
            DEFAULT: np.asarray(library.fit(x, y).coef_),
        }
        if setting.two_rounds:
            fits = {"published algorithm": next(iter(fits.values())), DEFAULT: fits[DEFAULT]}
            fits[_TWO_ROUNDS] = _two_rounds(model, x, y, largest, epsilon, rng)
        at = fixed.get(setting.axis, epsilon)
        for method, coef in fits.items():
            yield Reading(panel, line, method, at, _error(model.design, coef, w))
    plain = _error(model.design, least_squares_of(model.response, x, y), w)
    for at in setting.epsilons if setting.axis == "epsilon" else (fixed[setting.axis],):
        yield Reading(panel, "", PLAIN, at, plain)
        yield Reading(panel, "", TRIVIAL, at, 1.0)


def _weight(setting: LocalSetting) -> float:
    return setting.n * setting.d * (3.0 + len(setting.epsilons)) / 1e7


_EPSILONS = (4.0, 5.0, 7.0, 10.0)
_NORMAL_EPSILONS = (5.0, 7.0, 10.0, 15.0)
_SIZES = tuple(range(200_000, 900_000, 100_000))
_QUICK_SIZES = (200_000, 400_000)


def _pair(name: str) -> tuple[Sequence[int], tuple[float, ...]]:
    """Dimensions and epsilons of a model's figures."""
    normal = _MODELS[name].design != "Bernoulli"
    return ((10, 20, 30), _NORMAL_EPSILONS) if normal else ((20, 30, 50), _EPSILONS)


def _against_n(name: str, quick: bool) -> tuple[LocalSetting, ...]:
    dimensions, epsilons = _pair(name)
    sizes = _QUICK_SIZES if quick else _SIZES
    made = settings_of(LocalSetting, model=[name], axis=["n"], n=sizes, d=dimensions, m=[0], epsilons=[epsilons])
    return tuple(replace(one, m=one.n // 100) for one in made)


def _beside(name: str, quick: bool) -> tuple[LocalSetting, ...]:
    """The left plot against n at one epsilon, the others against the number of public rows."""
    dimensions, epsilons = _pair(name)
    sizes = _QUICK_SIZES if quick else _SIZES
    left = settings_of(LocalSetting, model=[name], axis=["p"], n=sizes, d=dimensions, m=[0], epsilons=[epsilons[:1]])
    publics = (500, 3_000) if quick else (250, 500, 1_000, 2_000, 3_000, 5_000)
    right = settings_of(
        LocalSetting, model=[name], axis=["m"], n=[200_000, 400_000], d=[20], m=publics, epsilons=[epsilons]
    )
    return (*(replace(one, m=one.n // 100) for one in left), *right)


def _by_epsilon(quick: bool) -> tuple[LocalSetting, ...]:
    sizes = (200_000,) if quick else (200_000, 400_000, 800_000)
    return settings_of(
        LocalSetting, model=list(_MODELS), axis=["epsilon"], n=sizes, d=[20], m=[4_000],
        epsilons=[(4.0, 5.0, 7.0, 10.0, 15.0, 20.0)[:: 2 if quick else 1]],
    )  # fmt: skip


def _rounds(quick: bool) -> tuple[LocalSetting, ...]:
    sizes = _QUICK_SIZES if quick else _SIZES
    names = ("logistic, diagonal", "exponential, Bernoulli", "sigmoid, diagonal", "cubic, Bernoulli")
    shown = zip(names, (20, 20, 20, 40), strict=True)
    return tuple(LocalSetting(name, "n", n, d, n // 100, (10.0,), two_rounds=True) for name, d in shown for n in sizes)


_PRINTED = (
    "the printed noise is (epsilon, delta)-DP only for epsilon up to 1; the library has exact noise at the same "
    "epsilon "
    "and delta"
)
_CHOICES = (
    "n, p and epsilon are read off the two figures whose axes are legible in our copy (10 and 11) and used for all; "
    "m = n/100 and delta = n^-1.1 (both garbled)",
    _PRINTED,
    "above epsilon 10 the library has no unit vectors, its most accurate message, and is less accurate than at 10",
    "public rows have no labels, so public rows alone predict 0: the trivial line; the trivial error is 1",
    "noise of labels is uniform in [-.05, .05]",
    "U is a rotation (with a reflection U + I is singular), and U + I is made symmetric",
    "exponential responses are divided by e, the bound of the design, since Algorithm 2 needs |y| <= 1",
)
_DESIGNS = {
    "logistic, non-diagonal": (
        "U + I has eigenvalues near 0: along them noise determines the coefficients, also those of the library, whose "
        "predictions hardly depend on them"
    ),
    "cubic, Bernoulli": (
        "x'w is of size 1/p, and its cube is hidden by the noise of labels of .05: even the fit without privacy is far "
        "from w where p is 30 or more"
    ),
}
_CONSTANTS = (
    "the printed radius (r^2 about 250 p for normal rows; 1 for Bernoulli rows of norm p^-1/2) makes the noise larger "
    "than the moments: the answer is that of noise"
)


def _useful(name: str) -> Claim:
    return Claim(
        "A small public sample is enough for outstanding performance (we ask: an error below half of that of "
        "answering 0).",
        below(name, TRIVIAL, factor=0.5), _CONSTANTS,
    )  # fmt: skip


def _growing(name: str, epsilons: Sequence[float]) -> tuple[Claim, ...]:
    lines = [f"epsilon {epsilon:g}" for epsilon in epsilons]
    return (
        Claim("The error falls as n grows, at every p and epsilon.", changes(name), _CONSTANTS),
        Claim("The error falls as epsilon grows.", orders(name, lines, what="by epsilon"), _CONSTANTS),
    )


def _pair_of(first: int, name: str) -> tuple[Experiment, Experiment]:
    model = _MODELS[name]
    dimensions, epsilons = _pair(name)
    measure = "squared relative error" + (" (largest entry)" if model.design == "Bernoulli" else "")
    title = f"{model.name}, {name}"
    made = []
    for figure, runs, claims in (
        (first, _against_n, _growing(model.name, epsilons)),
        (first + 1, _beside, (
            Claim("The error rises with the dimension p.",
                  orders(model.name, [f"p = {d}" for d in reversed(dimensions)], what="p falling"), _CONSTANTS),
            Claim("The number of public rows hardly matters (we ask: a factor below 2 at each epsilon).",
                  flat(model.name, 2.0, panels=[f"n = {n:,}, p = 20" for n in (200_000, 400_000)]), _CONSTANTS),
        )),
    ):  # fmt: skip
        settings = runs(name, False)
        panels = tuple(
            Panel(each, "public rows m" if each.startswith("n =") else "private rows n", measure)
            for each in dict.fromkeys(map(local_panel, settings))
        )
        made.append(
            Experiment(
                f"wang-{figure}", PAPER, f"Figure {figure}", title, panels, settings, runs(name, True), _simulate, 20,
                3, _weight, (*claims, _useful(model.name)), (*_CHOICES, *_seen(name)),
            )
        )  # fmt: skip
    return made[0], made[1]


def _seen(name: str) -> tuple[str, ...]:
    """What is to be known of a design."""
    return (_DESIGNS[name],) if name in _DESIGNS else ()


def _by_epsilon_figure() -> Experiment:
    claims = (
        Claim("The error is about proportional to epsilon^-2 (we ask: a slope of -2 +- .5).",
              slope_near("published algorithm", -2.0, 0.5), _CONSTANTS),
        _useful("published algorithm"),
    )  # fmt: skip
    panels = tuple(Panel(name, "epsilon", "squared relative error", "log") for name in _MODELS)
    return Experiment(
        "wang-17", PAPER, "Figure 17", "all algorithms against epsilon", panels, _by_epsilon(False), _by_epsilon(True),
        _simulate, 20, 3, _weight, claims, (*_CHOICES, *_DESIGNS.values()),
    )  # fmt: skip


def _rounds_figure() -> Experiment:
    settings = _rounds(False)
    panels = tuple(
        Panel(name, "private rows n", "squared relative error") for name in dict.fromkeys(map(local_panel, settings))
    )
    claims = (
        Claim("The two-round algorithm has larger errors than the one-round algorithms.",
              below("published algorithm", _TWO_ROUNDS), _CONSTANTS),
        _useful("published algorithm"),
    )  # fmt: skip
    choices = (
        "of the four plots only the last (cubic, p = 40) is described; the others are Algorithms 1 to 3 at p = 20, "
        "all at "
        "epsilon 10",
        "the paper prints two rounds for Algorithm 1 alone: the others use it with their own mean response, with "
        "predictions "
        "clipped to [0, 1] as printed",
    )
    return Experiment(
        "wang-18", PAPER, "Figure 18", "one round and two", panels, settings, _rounds(True), _simulate, 20, 3, _weight,
        claims, (*choices, *_CHOICES),
    )  # fmt: skip


EXPERIMENTS = (
    *(each for place, name in enumerate(_MODELS) for each in _pair_of(1 + 2 * place, name)),
    _by_epsilon_figure(),
    _rounds_figure(),
)
