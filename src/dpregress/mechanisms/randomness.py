"""Samplers of noise: the one place where a random generator is made.

The secure sampler is OpenDP's: a discrete Gaussian on a grid far finer than the noise, with randomness from the
operating system. Value and noise are added in integers. docs/privacy/floating-point.md proves that the release keeps
the Gaussian guarantee. The seeded sampler is for tests and simulations.
"""

from __future__ import annotations

import math
import os
import warnings
from abc import ABC, abstractmethod
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpregress.coordinates import Vector
from dpregress.coordinates.exact import ExactVector
from dpregress.errors import InvalidInput, SeededNoiseWarning, UnsafeNoise, one_line

#: The sampler's grid lies this many bits below sigma / sqrt(length).
GRID_BITS = 40
#: What of mu the grid takes; the logarithm from which the grid follows is off by less than the second term.
GRID_SHARE = 2.0**-GRID_BITS * (1 + 1e-12)
#: Values in floats are clamped to this many sigmas: beyond it the noise would fall under the value's own rounding.
_LARGEST_VALUE = 2.0**50
_SMALLEST_SIGMA, _LARGEST_SIGMA = 2.0**-900, 2.0**900
#: Whole numbers up to 2^53 and noise of these scales stay far within 64 bits.
SMALLEST_LAPLACE_SCALE, LARGEST_LAPLACE_SCALE = 2.0**-6, 2.0**46


class Sampler(ABC):
    """Draws noise and adds it to totals; chooses among scored candidates."""

    seeded: ClassVar[bool]

    def add_gaussian(self, value: ExactVector | Vector, sigma: float, *, apart: int = 0) -> Vector:
        """``value + N(0, sigma^2 I)``.

        Of values in floats, NaN counts as 0, and they are clipped to 2^50 sigma. Neither map increases the distance
        between neighbours' values, and neither raises an error.

        Parameters
        ----------
        value : ExactVector or ndarray, of shape (k,)
        sigma : float
            A public number.
        apart : int
            A seeded sampler draws the noise of this many last entries from a spawned child generator. The noise of
            the other entries is then the same as without these.

        Raises
        ------
        UnsafeNoise
            For a scale that is zero, negative, not finite, or outside the sampler's range.
        """
        check_sigma(sigma)
        if not isinstance(value, ExactVector):
            value = _clipped(value, sigma)
        noisy = self._draw_apart(value, float(sigma), apart)
        if noisy.shape != (len(value),):
            raise UnsafeNoise("the sampler answered with another length")
        return noisy

    def choose(self, scores: Vector, scale: float) -> int:
        """The position of the largest ``score + Gumbel(scale)``: the exponential mechanism's choice.

        Parameters
        ----------
        scores : ndarray of shape (k,)
            NaN counts as 0; scores are clipped to 2^50 scales.
        scale : float
            A public number.
        """
        check_sigma(scale)
        return self._choose(_clipped(scores, scale), float(scale))

    @abstractmethod
    def _draw(self, value: ExactVector | Vector, sigma: float) -> Vector:
        """Add the noise to a finite vector."""

    def _draw_apart(self, value: ExactVector | Vector, sigma: float, apart: int) -> Vector:  # noqa: ARG002 - of a seed alone
        """Add the noise; a seeded sampler draws that of the last ``apart`` entries from a stream of their own."""
        return self._draw(value, sigma)

    def uniform(self, *shape: int) -> NDArray[np.float64]:
        """Uniform numbers strictly between 0 and 1, on a grid of 2^-53, from the operating system or a seed."""
        bits = np.frombuffer(os.urandom(8 * math.prod(shape)), dtype="<u8") >> np.uint64(12)
        return np.asarray((bits.astype(np.float64) + 0.5) * 2.0**-52).reshape(shape)

    def normal(self, *shape: int) -> NDArray[np.float64]:
        """Standard normal float64 numbers: for directions only, never as noise on a private value."""
        return np.asarray(ndtri(self.uniform(*shape)))

    def add_integer_gaussian(self, value: NDArray[np.int64], scale: int) -> NDArray[np.int64]:
        """``value`` plus the discrete Gaussian of this scale on the integers, exactly.

        Parameters
        ----------
        value : ndarray of int64, of shape (k,)
        scale : int
            A public number, at least 1.

        Raises
        ------
        UnsafeNoise
        """
        if scale < 1:
            raise UnsafeNoise(f"no integer noise of scale {scale} can be drawn: take a finer grid")
        noisy = np.array(_integer_measurement(len(value), float(scale))(value.tolist()), dtype=np.int64)
        if noisy.shape != value.shape:
            raise UnsafeNoise("the sampler answered with another length")
        return noisy

    def add_discrete_laplace(self, value: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
        """``value`` plus the discrete Laplace law of this scale, ``P(k) ~ exp(-|k| / scale)``, exactly.

        Parameters
        ----------
        value : ndarray of int64, of shape (k,)
        scale : float
            A public number.

        Raises
        ------
        UnsafeNoise
        """
        if not SMALLEST_LAPLACE_SCALE <= scale <= LARGEST_LAPLACE_SCALE:
            raise UnsafeNoise(f"no whole-number noise of scale {scale:g} can be drawn: use a larger or smaller budget")
        noisy = np.array(self._draw_discrete_laplace(value, scale), dtype=np.int64)
        if noisy.shape != value.shape:
            raise UnsafeNoise("the sampler answered with another length")
        return noisy

    def _draw_discrete_laplace(self, value: NDArray[np.int64], scale: float) -> Any:
        """Add the noise to whole numbers."""
        return _discrete_laplace_measurement(len(value), scale)(value.tolist())

    def _choose(self, scores: Vector, scale: float) -> int:  # noqa: ARG002 - a sampler may serve sums alone
        """The noisy maximum of a finite vector."""
        raise UnsafeNoise(f"{type(self).__name__} does not choose")


class SecureSampler(Sampler):
    """OpenDP's float-safe Gaussian sampler, from the operating system's randomness."""

    seeded: ClassVar[bool] = False

    def _draw(self, value: ExactVector | Vector, sigma: float) -> Vector:
        """The value on the grid and the noise on the grid, added as integers; the sum is rounded to a float."""
        grid = math.floor(math.log2(sigma) - GRID_BITS - math.log2(len(value)) / 2)
        if not isinstance(value, ExactVector):
            value = ExactVector(np.ones(len(value), dtype=np.int64), value)
        noise = _integer_measurement(len(value), math.ldexp(sigma, -grid))([0] * len(value))
        return np.array([_number(k + z, grid) for k, z in zip(value.multiples(grid), noise, strict=True)])

    def _choose(self, scores: Vector, scale: float) -> int:
        return int(_noisy_max(scale)(scores.tolist()))


class SeededSampler(Sampler):
    """A NumPy generator: reproducible, and no protection against whoever knows the seed.

    Parameters
    ----------
    generator : numpy.random.Generator
    """

    seeded: ClassVar[bool] = True

    def __init__(self, generator: np.random.Generator) -> None:
        self.generator = generator

    def _draw(self, value: ExactVector | Vector, sigma: float) -> Vector:
        value = np.asarray(value)
        return np.asarray(value + self.generator.normal(0.0, sigma, size=value.shape))

    def _draw_apart(self, value: ExactVector | Vector, sigma: float, apart: int) -> Vector:
        value = np.asarray(value)
        if not apart:
            return self._draw(value, sigma)
        try:
            (child,) = self.generator.spawn(1)
        except TypeError:  # a generator that has no seed to spawn from
            child = self.generator
        return np.concatenate([self._draw(value[:-apart], sigma), SeededSampler(child)._draw(value[-apart:], sigma)])

    def uniform(self, *shape: int) -> NDArray[np.float64]:
        return np.asarray(np.maximum(self.generator.random(shape), 2.0**-54))

    def normal(self, *shape: int) -> NDArray[np.float64]:
        return np.asarray(self.generator.standard_normal(shape))

    def add_integer_gaussian(self, value: NDArray[np.int64], scale: int) -> NDArray[np.int64]:
        """``value`` plus rounded normal noise in place of the exact discrete Gaussian: for tests and simulations."""
        noise = self.generator.normal(0.0, float(scale), size=value.shape)
        return np.asarray(value + np.rint(noise).astype(np.int64))

    def _draw_discrete_laplace(self, value: NDArray[np.int64], scale: float) -> Any:
        """The difference of two geometric numbers: for tests and simulations."""
        up, down = self.generator.geometric(-math.expm1(-1 / scale), size=(2, *value.shape))
        return value + up - down

    def _choose(self, scores: Vector, scale: float) -> int:
        return int(np.argmax(scores + self.generator.gumbel(0.0, scale, size=scores.shape)))


def _clipped(value: Vector, sigma: float) -> Vector:
    """Finite floats: NaN counts as 0."""
    limit = min(sigma * _LARGEST_VALUE, np.finfo(float).max)
    safe = np.clip(np.nan_to_num(value, nan=0.0, posinf=limit, neginf=-limit), -limit, limit)
    return np.ascontiguousarray(safe, dtype=np.float64)


def _number(steps: int, exponent: int) -> float:
    """The float nearest to ``steps * 2^exponent``, or the largest one."""
    try:
        return math.ldexp(float(steps), exponent)
    except OverflowError:
        return math.copysign(float(np.finfo(float).max), steps)


def check_sigma(sigma: float) -> None:
    """Refuse a scale that is zero, negative, not finite, or outside the sampler's range."""
    if not _SMALLEST_SIGMA <= sigma <= _LARGEST_SIGMA:
        raise UnsafeNoise(f"no noise of scale {sigma} can be drawn safely: use a larger or smaller budget")


def noise_sampler(
    random_state: int | np.random.Generator | np.random.RandomState | None, *, stacklevel: int = 3
) -> Sampler:
    """The sampler of a fit: the operating system's randomness for None, otherwise a seeded one, with a warning.

    Parameters
    ----------
    random_state : int, Generator, RandomState or None
    stacklevel : int
        Of the warning.

    Raises
    ------
    InvalidInput
        For anything else.
    """
    if random_state is None:
        return SecureSampler()
    generator = _generator(random_state)
    warnings.warn(
        "the noise comes from a seed: anyone who knows it can subtract the noise; to publish, leave random_state=None",
        SeededNoiseWarning,
        stacklevel=stacklevel,
    )
    return SeededSampler(generator)


def _generator(random_state: Any) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        random_state = int(random_state.randint(2**31))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        pass  # its text shows what was given
    raise InvalidInput(
        f"random_state= takes None, a whole number from 0 or a NumPy Generator, not {one_line(random_state)}"
    )


def random_bytes(count: int) -> bytes:
    """Bytes from the operating system, for names that cannot be guessed."""
    return os.urandom(count)


def shared_seed(random_state: int | np.random.Generator | None, size: int = 32) -> bytes:
    """Bytes for what parties share openly, such as a sketch matrix; noise is never drawn from them.

    With a seed, the bytes come from a spawned child generator: the seed's own stream is the noise, and it must not
    begin with bytes that everybody knows.

    Parameters
    ----------
    random_state : int, Generator or None
        None draws from the operating system.
    size : int
    """
    return random_bytes(size) if random_state is None else _generator(random_state).spawn(1)[0].bytes(size)


def sampling_generator(random_state: int | np.random.Generator | None) -> np.random.Generator:
    """A generator for post-processing, such as sampling rows from a released model."""
    return np.random.default_rng(random_state)


@lru_cache(maxsize=32)
def _noisy_max(scale: float) -> Any:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_noisy_max
    from opendp.measures import zero_concentrated_divergence
    from opendp.metrics import linf_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    domain = vector_domain(atom_domain(T=float, nan=False))
    return make_noisy_max(domain, linf_distance(T=float), zero_concentrated_divergence(), scale=scale)


@lru_cache(maxsize=32)
def _integer_measurement(length: int, scale: float) -> Any:
    # the submodules, not opendp.prelude, which takes seconds to import
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    return make_gaussian(vector_domain(atom_domain(T="i64"), size=length), l2_distance(T=float), scale=scale)


@lru_cache(maxsize=32)
def _discrete_laplace_measurement(length: int, scale: float) -> Any:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    return make_laplace(vector_domain(atom_domain(T="i64"), size=length), l1_distance(T="i64"), scale=scale)
