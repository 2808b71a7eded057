"""Functions in a fixed order of IEEE operations: exponentials, logarithms, and tails of the normal distribution.

Libraries of mathematics round them differently. Here they are polynomials and a few products, so that every database
computes the same bits. No privacy rests on their values. Each takes a number that is 0 or at least ``2^-420``, and no
operation leaves the range of floats (docs/privacy/floating-point.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from dpregress.rows.row_kernel import RowExpression, Stage, case, multiplied, name, term

#: ``exp(z) = p(z / 2^8)^(16^2)``, p of this degree; arguments of p below ``_FLAT`` are 0.
_HALVINGS, _POWER, _DEGREE, _FLAT = 2.0**-8, 16, 10, 2.0**-60
#: Terms of the series of a logarithm: the first that is left out is ``(3 - sqrt 8)^22 / 23 < 1e-18``.
_TERMS = 11
#: Mills' ratio of a in [0, 5] is a polynomial of this in ``v = (3 a - 5) / (a + 5)``, which lies within 1. It
#: interpolates ``sqrt(pi / 2) erfcx(a / sqrt 2)`` at the 15 roots of a Chebyshev polynomial of v; a test states its
#: error. The constant comes first.
_MILLS = (
    0.480415428638146, -0.4429058198587342, 0.2183796989214283, -0.08239451818758395, 0.023618719441325445,
    -0.004928494718695351, 0.0006556680983646553, -2.5435360575680008e-05, -8.484107274290646e-06,
    1.2835370711172797e-06, 9.13764860518048e-08, -3.244880796652677e-08, -1.3896017965938282e-09,
    7.372364052571357e-10, 3.6531370521212615e-11,
)  # fmt: skip


def flushed(column: str, least: float) -> Stage:
    """0 in place of numbers that are smaller than ``least``."""
    value = name(column)
    return {column: case((value > -least) & (value < least), 0.0, value)}


def polynomial(column: str, at: str, coefficients: Sequence[float]) -> tuple[Stage, ...]:
    """A polynomial of the column ``at``, by Horner's rule in two stages: statements nest only so deep."""
    half = len(coefficients) // 2
    upper, lower = term(coefficients[-1]), name(column)
    for coefficient in reversed(coefficients[half:-1]):
        upper = upper * name(at) + coefficient
    for coefficient in reversed(coefficients[:half]):
        lower = lower * name(at) + coefficient
    return {column: upper}, {column: lower}


def exponentials(of: Mapping[str, RowExpression]) -> tuple[Stage, ...]:
    """Columns that are exponentials of numbers within 30.

    The relative error of the polynomial is below ``2e-18``, and that of the power with its roundings below ``1e-13``.
    """
    inverse = [1 / math.factorial(k) for k in range(_DEGREE + 1)]
    parts = {column: f"t_{column}" for column in of}
    return (
        {part: of[column] * _HALVINGS for column, part in parts.items()},
        *joined([flushed(part, _FLAT)] for part in parts.values()),
        *joined(polynomial(column, part, inverse) for column, part in parts.items()),
        *({column: multiplied([name(column)] * _POWER) for column in of},) * 2,
    )


def joined(columns: Iterable[Sequence[Stage]]) -> tuple[Stage, ...]:
    """Stages of several columns, computed side by side."""
    return tuple(
        {column: value for stage in beside for column, value in stage.items()} for beside in zip(*columns, strict=True)
    )


def logarithm(column: str, of: RowExpression, least: float, most: float) -> tuple[Stage, ...]:
    """A column that is the logarithm of a number between two public ones, both within ``[2^-100, 2^100]``.

    Powers of two are taken out by comparisons, until the rest m lies between the root of 1/2 and that of 2. Its
    logarithm is ``2 s (1 + s^2/3 + s^4/5 + ..)`` with ``s = (m - 1) / (m + 1)``, whose error is below ``1e-18``.
    """
    rest, octaves, odd, square, series = (f"{letter}_{column}" for letter in "mnstp")
    furthest = 1 + max(abs(math.frexp(bound)[1]) for bound in (least, most))
    halvings = [(2.0**octave, octave) for octave in (64, 32, 16, 8, 4, 2, 1) if octave < furthest]
    m = name(rest)
    return (
        {rest: of, octaves: term(0.0)},
        *(
            {
                rest: case(m > limit, m * 2.0**-places, m < 1 / limit, m * 2.0**places, m),
                octaves: name(octaves) + case(m > limit, float(places), m < 1 / limit, float(-places), 0.0),
            }
            for limit, places in (*halvings, (math.sqrt(2.0), 1))
        ),
        {odd: (m - 1.0) / (m + 1.0)},
        {square: name(odd) * name(odd)},
        *polynomial(series, square, [1 / (2 * k + 1) for k in range(_TERMS)]),
        {column: name(octaves) * math.log(2.0) + name(odd) * 2.0 * name(series)},
    )


def normal_tail(eta: str) -> tuple[Stage, ...]:
    """``tail``, the probability beyond ``|eta|``, and ``mills``, that over the density; eta lies within 5."""
    size, given = name("size"), name(eta)
    return (
        {"size": case(given < 0.0, term(0.0) - given, given)},
        {"v": (size * 3.0 - 5.0) / (size + 5.0)},
        *polynomial("mills", "v", _MILLS),
        *exponentials({"tail": size * size * -0.5}),
        {"tail": name("tail") * name("mills") * (1 / math.sqrt(2 * math.pi))},
    )
