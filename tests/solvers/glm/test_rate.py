"""The rate of a class: how much of the budget it is worth, and that a rare one is asked again."""

from __future__ import annotations

from dpregress import GDP, Numeric, Schema
from dpregress.public.whitening import start
from dpregress.solvers.glm.rate import Rate, again_share

D, N = 4, 6_000
NAMES = tuple(f"x{place}" for place in range(D))
SCHEMA = Schema({name: Numeric(-1, 1) for name in NAMES})
SPACE = start(NAMES, intercept=True, public=None, schema=SCHEMA, row_bound=None).space


def share(value: float, noise: float, mu: float) -> float:
    return again_share(SPACE, GDP(mu), N, Rate.of(value, noise, N), noise)


def test_a_rare_class_is_asked_again_where_its_rate_is_noise() -> None:
    assert share(0.01, 0.02, 0.02) > 0.3
    assert share(0.99, 0.02, 0.02) == share(0.01, 0.02, 0.02)


def test_even_classes_and_known_rates_are_not() -> None:
    assert share(0.5, 0.02, 0.05) == 0
    assert share(0.05, 1e-4, 0.05) == 0
    assert share(0.01, 2e-4, 3.0) == 0


def test_the_more_the_first_rate_says_the_less_a_second_is_worth() -> None:
    shares = [share(0.06, noise, 0.02) for noise in (0.03, 0.01, 0.003, 0.001)]
    assert shares == sorted(shares, reverse=True)
