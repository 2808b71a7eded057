"""Counts of rare events: noise hides them in histograms, and rows without one are all that is seen."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpregress import ApproxDP, DPPoissonRegressor, Numeric, Schema
from dpregress.coordinates import Vector, WhitenedSpace
from dpregress.errors import SeededNoiseWarning
from dpregress.models import GammaFamily, PoissonFamily
from dpregress.releases import Histogram, Isotropic
from dpregress.solvers.glm.amounts import of_counts
from dpregress.solvers.glm.rare_counts import hidden_events, likely_mean, with_events, with_hidden
from dpregress.solvers.shared.likely_values import LikelyValues
from dpregress.solvers.shared.magnitudes import EDGES, Magnitudes, visible_count

N = 50_000


def seen(events: float) -> Histogram:
    """Rows without an event have residuals of some hundredths, and so many events are counted."""
    total = np.zeros(len(EDGES) - 1)
    total[np.searchsorted(EDGES, 0.01) - 1], total[np.searchsorted(EDGES, 0.99) - 1] = N - events, events
    space = WhitenedSpace((), np.eye(1), 2.0, np.zeros(0), intercept=True)
    return Histogram(total, N, Isotropic(80.0), (), space, EDGES)


def test_hidden_events_are_those_that_noise_may_hide() -> None:
    histogram = seen(0)
    assert 0 < hidden_events(PoissonFamily, histogram) < visible_count(histogram) / N
    assert hidden_events(GammaFamily, histogram) == 0  # an amount has no least size


def test_events_that_nobody_sees_have_size_one() -> None:
    sizes = with_events(Magnitudes.of_histogram(seen(0)), PoissonFamily, seen(0))
    assert sizes.size[-1] == 1
    assert sizes.share[-1] == pytest.approx(hidden_events(PoissonFamily, seen(0)))
    assert sizes.share.sum() == pytest.approx(1)


def test_a_tail_of_events_counts_in_the_mean() -> None:
    """Noise of 250 rows hides each of five bins with 750, and a threshold of 1,500 is not reached."""
    space = WhitenedSpace((), np.eye(1), 2.0, np.zeros(0), intercept=True)
    total, first = np.zeros(len(EDGES) - 1), int(np.searchsorted(EDGES, 4.0))
    total[0], total[first : first + 5] = N - 3_750, 750.0
    histogram = Histogram(total, N, Isotropic(250.0), (), space, EDGES)
    events = 750 / N * np.sqrt(EDGES[first : first + 5] * EDGES[first + 1 : first + 6]).sum()
    assert Magnitudes.of_histogram(histogram).mean < 1e-20
    assert likely_mean(PoissonFamily, histogram, (0.0, 100.0), None) == pytest.approx(events, rel=0.3)
    nothing = Histogram(np.where(total > N / 2, float(N), 0.0), N, Isotropic(250.0), (), space, EDGES)
    assert likely_mean(PoissonFamily, nothing, (0.0, 100.0), None) == hidden_events(PoissonFamily, nothing)


def test_events_of_the_largest_size_count_in_the_mean_and_codes_do_not() -> None:
    """A count of 1 between 0 and 1 is in the bin that begins there."""
    space = WhitenedSpace((), np.eye(1), 2.0, np.zeros(0), intercept=True)
    total = np.zeros(len(EDGES) - 1)
    total[0], total[np.searchsorted(EDGES, 1.0)], total[np.searchsorted(EDGES, 9_999.0) - 1] = (
        0.89 * N,
        0.1 * N,
        0.01 * N,
    )
    histogram = Histogram(total, N, Isotropic(3.0), (), space, EDGES)
    found = likely_mean(PoissonFamily, histogram, (0.0, 1.0), (-0.5, 1.5))
    assert found == pytest.approx(0.1, rel=0.25)  # sizes are those of the middles of bins


def test_events_that_are_seen_are_left_as_they_are() -> None:
    found = Magnitudes.of_histogram(seen(5_000))
    assert with_events(found, PoissonFamily, seen(5_000)) is found


def deviance(y: Vector, mean: Vector) -> float:
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(y > 0, y * np.log(np.where(y > 0, y, 1) / mean), 0.0)
    return float(2 * np.mean(logs - y + mean))


def worse_than_the_mean(epsilon: float, seed: list[int]) -> float:
    """The deviance of a fit by schema alone, over that of the mean for everybody."""
    draw = np.random.default_rng([*seed, 71])
    x = draw.uniform(0, 1, (N, 4))
    y = draw.poisson(0.01 * np.exp(x @ [0.8, -0.5, 0.3, 0.0] - 0.3)).astype(float)
    names = ["a", "b", "c", "d"]
    table = pd.DataFrame(x, columns=names).assign(claims=y)
    schema = Schema({**dict.fromkeys(names, Numeric(0, 1)), "claims": Numeric(0, 4)})
    model = DPPoissonRegressor(ApproxDP(epsilon, 1e-6), schema=schema, random_state=np.random.default_rng([*seed, 72]))
    with pytest.warns(SeededNoiseWarning):
        model.fit_table(table, "claims", names, progress=False)
    return deviance(y, model.predict(table[names])) / deviance(y, np.full(N, y.mean()))


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.0, 3.0])
def test_one_event_in_a_hundred_rows_is_predicted_no_worse_than_by_the_mean(epsilon: float, seed: int) -> None:
    """Every fit was 5 times as bad at small budgets: it predicted 2e-11.

    Over 24 seeds the excess has mean .009 and standard deviation .011 at the budget where it is largest, .3: that of
    a gamma distribution of shape .6 and scale .014. The mean of eight exceeds .1 less than once in 1e9.
    """
    assert np.mean([worse_than_the_mean(epsilon, [seed, fit]) for fit in range(8)]) < 1.1


@pytest.mark.parametrize("lower", [0.0, 2.5])
@pytest.mark.parametrize("upper", [4.0, 12.0, 60.0, 977.5, 1e6, 1e12])
def test_every_bin_of_counts_has_a_whole_number(lower: float, upper: float) -> None:
    """A bin without one has noise alone; every number up to the bound is within the ends of one bin."""
    edges, value, width = of_counts(lower, upper)
    least = np.ceil(lower)
    numbers = np.arange(least, np.floor(min(upper, 1e3)) + 1)
    numbers = np.unique(np.concatenate([numbers, np.floor(edges[2:-1]), [np.floor(upper)]]))
    assert (np.diff(edges)[1:] >= 1).all()
    assert len(edges) <= 43
    place = np.digitize(numbers, edges[1:-1])
    assert (np.abs(value[place] - numbers) <= width[place] + 1e-9 * numbers).all()
    assert value[0] == least
    assert value[-1] <= upper


def test_events_that_noise_hides_are_counted_among_values() -> None:
    values = LikelyValues(np.array([0.0, 1.0, 2.0]), np.array([1.0, 0.0, 0.0]), 0.0)
    assert with_hidden(values, 0.12).share == pytest.approx([0.88, 0.08, 0.04])
    assert with_hidden(values, 7.0).share == pytest.approx([0.5, 1 / 3, 1 / 6])  # of few usable rows noise hides all
    some = LikelyValues(values.value, np.array([0.8, 0.1, 0.1]), 0.0)
    assert with_hidden(some, 0.1) is some


def claims(rng: np.random.Generator, rows: int) -> pd.DataFrame:
    """Seven of eight policies have no claim, and others up to 12."""
    age, distance = rng.uniform(18, 80, rows), rng.lognormal(2.3, 0.6, rows).clip(0, 100)
    rate = np.exp(-1.2 - 0.01 * (age - 45) + 0.02 * (distance - 11)) * rng.gamma(1.5, 1 / 1.5, rows)
    y = np.where(rng.random(rows) < 0.45, 0, rng.poisson(rate)).clip(0, 12)
    return pd.DataFrame({"age": age, "distance": distance, "claims": y.astype(float)})


@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
def test_few_events_among_some_thousand_rows_are_predicted_no_worse_than_by_the_mean(seed: int) -> None:
    """Sizes were looked for between whole numbers, and clips took events unseen: 1.2 in the mean, and up to 1.5.

    Over 200 fits the excess has mean .012 and standard deviation .027 and is .14 at most: the sum of eight is about as
    a gamma variable of shape 1.7 and scale .058, which exceeds 8 times .15 once in 1e7.
    """
    found = []
    for fit in range(8):
        rng = np.random.default_rng([seed, fit, 73])
        private, new = claims(rng, 4_000), claims(rng, 4_000)
        schema = Schema({"age": Numeric(18, 80), "distance": Numeric(0, 100), "claims": Numeric(0, 12)})
        model = DPPoissonRegressor(ApproxDP(0.1, 1e-6), schema=schema, random_state=rng)
        model.fit_table(private, "claims", ["age", "distance"], progress=False)
        y, mean = new.claims.to_numpy(), private.claims.mean()
        found.append(deviance(y, model.predict(new)) / deviance(y, np.full(len(y), mean)))
    assert np.mean(found) < 1.15
