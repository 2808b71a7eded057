"""First spaces: they whiten, their radius is the leave-one-out median, and bounds really bound."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import chi2

from dpregress import Categorical, Numeric, PublicMoments, Schema
from dpregress.coordinates import Matrix, WhitenedSpace
from dpregress.errors import InvalidInput, UnboundedData
from dpregress.public.radius import RowNorms, chi_radius, public_radius
from dpregress.public.root import Root
from dpregress.public.whitening import from_public, start, unseen_scale

#: Public rows of which no eigenvalue is raised: a mean of so many squares would have to lie 20% above its expectation,
#: which is 7.7 of its standard deviations.
MANY = 3_000


def rows_of(seed: int, m: int = 60, d: int = 4) -> Matrix:
    """Correlated rows of different scales, not centred."""
    rng = np.random.default_rng(seed)
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    spread = rng.normal(size=(m, d)) * np.linspace(1, 3, d)
    return (spread @ rotation + rng.uniform(-1, 1, size=d)) * 10.0 ** np.arange(-2, d - 2)


def joint(rows: Matrix, intercept: bool) -> Matrix:
    return np.column_stack([np.ones(len(rows)), rows]) if intercept else rows


def norms(space: WhitenedSpace, rows: Matrix) -> Matrix:
    return np.linalg.norm(joint(rows, space.intercept) @ space.whitening.T, axis=1)


@pytest.mark.parametrize("intercept", [True, False])
def test_public_moments_are_whitened(intercept: bool, seed: int) -> None:
    public = PublicMoments.from_rows(rows_of(seed, m=MANY))
    space = from_public(public, intercept=intercept)
    product = space.whitening @ public.augmented(intercept) @ space.whitening.T
    np.testing.assert_allclose(product, np.eye(space.order), atol=1e-6)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("scales", list(permutations([1e4, 1.0, 1e-3])))
def test_scales_far_apart_are_whitened(intercept: bool, scales: tuple[float, ...], seed: int) -> None:
    """A rate next to an income: columns seven orders of magnitude apart, in any order."""
    rows = np.random.default_rng(seed).normal(size=(MANY, 3)) @ (np.eye(3) + 0.3) * scales
    public = PublicMoments.from_rows(rows)
    space = from_public(public, intercept=intercept)
    product = space.whitening @ public.augmented(intercept) @ space.whitening.T
    np.testing.assert_allclose(product, np.eye(space.order), atol=1e-6)


def test_the_constant_comes_first_and_is_one(seed: int) -> None:
    space = from_public(PublicMoments.from_rows(rows_of(seed)), intercept=True)
    np.testing.assert_array_equal(space.whitening[0], np.eye(space.order)[0])


@pytest.mark.parametrize("intercept", [True, False])
def test_the_radius_is_the_leave_one_out_median(intercept: bool, seed: int) -> None:
    rows = rows_of(seed, m=MANY)
    space = from_public(PublicMoments.from_rows(rows), intercept=intercept)
    vectors = joint(rows, intercept)
    squares = []
    for left_out in range(len(rows)):
        others = np.delete(vectors, left_out, axis=0)
        second = others.T @ others / len(others)
        squares.append(vectors[left_out] @ np.linalg.solve(second, vectors[left_out]))
    assert space.radius == pytest.approx(math.sqrt(np.median(squares)), rel=1e-6)


def test_a_row_that_alone_has_a_level_does_not_decide_norms(seed: int) -> None:
    """Its leave-one-out norm is infinite; in these coordinates its own norm, and that of rows like it, is sqrt(m)."""
    rows = np.column_stack([rows_of(seed, m=MANY), np.zeros(MANY)])
    rows[7, -1] = 1.0
    public = PublicMoments.from_rows(rows)
    space = from_public(public, intercept=False)
    found = RowNorms.leave_one_out(public, space).sample
    assert found[7] == found.max() == pytest.approx(math.sqrt(MANY - 1))
    assert np.linalg.norm(space.whiten(rows[7:8])) == pytest.approx(math.sqrt(MANY))


def test_a_level_in_each_row_leaves_a_radius_in_reach(seed: int) -> None:
    """More than half of the rows have a leverage of 1."""
    rows = np.column_stack([np.eye(14)[:, :8], np.random.default_rng(seed).normal(size=(14, 3))])
    assert from_public(PublicMoments.from_rows(rows), intercept=False).radius <= math.sqrt(14)


def test_without_rows_the_radius_is_that_of_normal_rows(seed: int) -> None:
    public = PublicMoments.from_rows(rows_of(seed))
    published = PublicMoments.from_matrix(public.second, n=60, mean=public.mean)
    space = from_public(published, intercept=False)
    assert space.radius == pytest.approx(math.sqrt(chi2.median(4) * 60 / 55))
    assert chi_radius(space) == pytest.approx(math.sqrt(chi2.median(4)))


@pytest.mark.parametrize("n", [1, 2, 4, 5])
def test_the_radius_stays_finite_with_hardly_any_rows(n: int) -> None:
    published = PublicMoments.from_matrix(np.eye(4), n=n, mean=np.zeros(4))
    for intercept in (True, False):
        space = from_public(published, intercept=intercept)
        assert 0 < public_radius(published, space) < 10


def test_a_cell_that_is_missing_counts_as_the_public_mean(seed: int) -> None:
    public = PublicMoments.from_rows(rows_of(seed))
    for intercept in (True, False):
        np.testing.assert_array_equal(from_public(public, intercept=intercept).fill, public.mean)


# ------------------------------------------------------------------ singular moments


def singular() -> PublicMoments:
    """A column that is always 0, and one that repeats another."""
    rows = np.random.default_rng(0).normal(size=(50, 2))
    return PublicMoments.from_rows(np.column_stack([rows, np.zeros(50), 2 * rows[:, 0]]))


@pytest.mark.parametrize("intercept", [True, False])
def test_a_singular_moment_is_refused(intercept: bool) -> None:
    with pytest.raises(InvalidInput, match="singular \\(rank 2 of 4\\)") as caught:
        from_public(singular(), intercept=intercept)
    assert "\n" not in str(caught.value)
    assert "along x0, x2, x3: give a schema" in str(caught.value)


def test_a_constant_column_is_singular_next_to_an_intercept() -> None:
    rows = np.column_stack([np.random.default_rng(0).normal(size=50), np.full(50, 3.0)])
    from_public(PublicMoments.from_rows(rows), intercept=False)
    with pytest.raises(InvalidInput, match="singular"):
        from_public(PublicMoments.from_rows(rows), intercept=True)


@pytest.mark.parametrize("known", ["rows", "moments"])
@pytest.mark.parametrize("value", [0.1, -1 / 3, 3.4103209880823884, 129.174796103482, 1e5 / 7, -2e9 / 3])
def test_what_rounding_leaves_of_a_constant_is_no_variance(value: float, known: str, seed: int) -> None:
    """The mean of equal numbers is not exact, nor is their mean square; that of many of them is less so."""
    for m in (*range(50, 80), 1_000, 20_000):
        rows = np.column_stack([np.random.default_rng([seed, m]).normal(size=m), np.full(m, value)])
        public = PublicMoments.from_rows(rows)
        if known == "moments":
            public = replace(public, rows=None)
        with pytest.raises(InvalidInput, match="singular \\(rank 1 of 2\\)"):
            from_public(public, intercept=True)


def test_columns_far_from_0_are_whitened(seed: int) -> None:
    """Such as times in seconds within one hour: the mean square has no digits left for their variance."""
    rows = np.random.default_rng(seed).normal(size=(MANY, 2))
    near = from_public(PublicMoments.from_rows(rows), intercept=True)
    far = from_public(PublicMoments.from_rows(rows + np.array([1e9, 0.0])), intercept=True)
    np.testing.assert_allclose(far.slopes, near.slopes, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(far.radius, near.radius, rtol=1e-6)


def test_rows_of_zeros_have_no_part_in_the_radius(seed: int) -> None:
    """Of sparse columns without an intercept most rows may be 0; the radius is that of the others."""
    rows = np.zeros((300, 3))
    rows[:100] = np.random.default_rng(seed).normal(size=(100, 3))
    public = PublicMoments.from_rows(rows)
    space = from_public(public, intercept=False)
    assert space.radius > 1
    assert (RowNorms.leave_one_out(public, space).sample > 0).all()


def test_only_rows_of_zeros_are_refused() -> None:
    public = PublicMoments.from_rows(np.zeros((300, 2)))
    schema = Schema({"x0": Numeric(-1, 1), "x1": Numeric(-1, 1)})
    with pytest.raises(InvalidInput, match="all public rows are 0"):
        start(public.names, intercept=False, public=public, schema=schema, row_bound=None)


@pytest.mark.parametrize("m", [8, 15])
def test_public_rows_far_beyond_the_bounds_are_refused(m: int, seed: int) -> None:
    """Where bounds are the start, whether there are few rows or some skewed ones."""
    schema = Schema({"x0": Numeric(-1e-40, 1e-40), "x1": Numeric(-1, 1)})
    public = PublicMoments.from_rows(skewed(seed, m=m, d=2))
    with pytest.raises(InvalidInput, match="far beyond the bounds"):
        start(public.names, intercept=True, public=public, schema=schema, row_bound=None)


@pytest.mark.parametrize("intercept", [True, False])
def test_a_schema_scales_what_the_public_rows_do_not_show(intercept: bool) -> None:
    public = singular()
    scale = np.array([4.0, 4.0, 0.5, 8.0])
    space = from_public(public, intercept=intercept, null_scale=scale)
    values = np.linalg.eigvalsh(space.whitening @ public.augmented(intercept) @ space.whitening.T)
    np.testing.assert_allclose(values, [0, 0, *np.ones(space.order - 2)], atol=1e-9)
    assert np.linalg.matrix_rank(space.whitening) == space.order
    unseen = np.zeros((1, 4))
    unseen[0, 2] = 0.5  # one scale away in the direction that was always 0
    shown = norms(space, unseen)[0] ** 2 - norms(space, np.zeros((1, 4)))[0] ** 2
    assert shown == pytest.approx(1.0)


def test_start_uses_the_schema_for_a_singular_moment() -> None:
    public = singular()
    schema = Schema({name: Numeric(-4, 4) for name in public.names})
    found = start(public.names, intercept=True, public=public, schema=schema, row_bound=None)
    assert np.isfinite(found.space.radius)
    with pytest.raises(InvalidInput, match="singular"):
        start(public.names, intercept=True, public=public, schema=None, row_bound=None)


@pytest.mark.parametrize("intercept", [True, False])
def test_levels_and_gaps_that_no_public_row_shows(intercept: bool, seed: int) -> None:
    """They take the schema's scale, or less; the columns that the public rows do show are whitened by them alone."""
    names = ("income", "sex=m", "sex=x", "income=missing")
    schema = Schema({"income": Numeric(missing="indicator"), "sex": Categorical(("f", "m", "x"))})
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.normal(5e4, 1e3, MANY), rng.permutation(MANY) < 0.4 * MANY, np.zeros((MANY, 2))])
    found = start(
        names, intercept=intercept, public=PublicMoments.from_rows(rows, names=names), schema=schema, row_bound=None
    )
    shown = from_public(PublicMoments.from_rows(rows[:, :2], names=names[:2]), intercept=intercept)
    np.testing.assert_allclose(norms(found.space, rows), norms(shown, rows[:, :2]), rtol=1e-6)
    nothing = norms(found.space, rows[:1])[0] ** 2
    for column, levels in ((2, 3), (3, 2)):
        row = rows[:1].copy()
        row[0, column] = 1
        assert norms(found.space, row)[0] ** 2 - nothing == pytest.approx(levels, rel=1e-6)
        assert found.instead is not None
        longer = norms(found.instead.space, row)[0] ** 2 - norms(found.instead.space, rows[:1])[0] ** 2
        assert longer == pytest.approx(levels / unseen_scale(MANY) ** 2, rel=1e-6)
    np.testing.assert_allclose(norms(found.instead.space, rows), norms(found.space, rows), rtol=1e-6)


def test_what_many_public_rows_do_not_show_is_rare() -> None:
    assert [unseen_scale(m) for m in (1, 36, 144, 576, 10**9)] == [1.0, 1.0, 0.5, 0.25, 0.25]


def test_bounds_far_too_wide_do_not_drown_what_the_public_rows_show(seed: int) -> None:
    rows = np.column_stack([rows_of(seed, m=MANY, d=2), np.zeros(MANY)])
    public = PublicMoments.from_rows(rows, names=("a", "b", "c"))
    schema = Schema({"a": Numeric(-1e12, 1e12), "b": Numeric(), "c": Numeric(0, 1)})
    found = start(public.names, intercept=True, public=public, schema=schema, row_bound=None)
    values = np.linalg.eigvalsh(found.space.whitening @ public.augmented(True) @ found.space.whitening.T)
    np.testing.assert_allclose(values, [0, 1, 1, 1], atol=1e-6)


def test_a_direction_that_nothing_scales_is_refused() -> None:
    schema = Schema({"x0": Numeric(0, 1), "x1": Numeric(0, 1), "x2": Numeric(0, 1)})
    with pytest.raises(InvalidInput, match="singular"):  # x3 repeats x0 and has no bounds
        start(singular().names, intercept=True, public=singular(), schema=schema, row_bound=None)


def test_a_declared_fill_holds_for_the_other_start(seed: int) -> None:
    rows = np.column_stack([rows_of(seed, m=MANY, d=1), np.zeros(MANY)])
    schema = Schema({"x0": Numeric(-9, 9, fill=3.0), "x1": Numeric(0, 1)})
    found = start(("x0", "x1"), intercept=True, public=PublicMoments.from_rows(rows), schema=schema, row_bound=None)
    assert found.instead is not None
    assert found.space.fill[0] == found.instead.space.fill[0] == 3.0


def test_a_declared_fill_wins_over_the_public_mean(seed: int) -> None:
    public = PublicMoments.from_rows(rows_of(seed))
    schema = Schema({"x1": Numeric(fill=7.0), "x2": Numeric(-9, 9)})
    found = start(public.names, intercept=True, public=public, schema=schema, row_bound=None)
    assert public.mean is not None
    np.testing.assert_array_equal(found.space.fill, [public.mean[0], 7.0, *public.mean[2:]])
    bounded = Schema({"a": Numeric(0, 10), "b": Numeric(0, 10, fill=2.0)})
    alone = start(("a", "b"), intercept=True, public=None, schema=bounded, row_bound=None)
    np.testing.assert_array_equal(alone.space.fill, [5.0, 2.0])


# ------------------------------------------------------------------ bounds instead of public rows


@pytest.mark.parametrize("intercept", [True, False])
def test_a_schema_space_contains_every_row_within_bounds(intercept: bool, seed: int) -> None:
    schema = Schema({"age": Numeric(18, 110), "debt": Numeric(-5e6, 10), "sex": Categorical(("f", "m", "x"))})
    names = ("age", "sex=m", "sex=x", "debt")
    found = start(names, intercept=intercept, public=None, schema=schema, row_bound=None)
    rng = np.random.default_rng(seed)
    lower, upper = np.array([18, 0, 0, -5e6]), np.array([110, 1, 1, 10])
    corners = np.where(rng.random((200, 4)) < 0.5, lower, upper)
    rows = np.concatenate([corners, rng.uniform(lower, upper, size=(200, 4))])
    for some in corners, rows:
        some[:, 1:3] = np.array([[0, 0], [1, 0], [0, 1]])[rng.integers(3, size=len(some))]  # a row has one level
    assert norms(found.space, rows).max() <= found.space.radius * (1 + 1e-12)
    assert norms(found.space, corners).max() >= 0.5 * found.space.radius
    assert found.refinements == 3


@pytest.mark.parametrize("intercept", [True, False])
def test_a_row_bound_contains_every_row_within_it(intercept: bool, seed: int) -> None:
    found = start(("a", "b", "c"), intercept=intercept, public=None, schema=None, row_bound=7.0)
    rows = np.random.default_rng(seed).normal(size=(200, 3))
    rows *= 7.0 / np.linalg.norm(rows, axis=1, keepdims=True)
    np.testing.assert_allclose(norms(found.space, rows), found.space.radius)
    assert found.refinements == 3


def test_a_column_may_have_an_equals_sign_in_its_name() -> None:
    schema = Schema({"a=b": Numeric(0, 100)})
    found = start(("a=b",), intercept=True, public=None, schema=schema, row_bound=None)
    assert norms(found.space, np.array([[0.0], [100.0]])).max() <= found.space.radius * (1 + 1e-12)


@pytest.mark.parametrize("row_bound", [0.0, -1.0, math.inf, math.nan])
def test_a_bad_row_bound_is_refused(row_bound: float) -> None:
    with pytest.raises(InvalidInput, match="row_bound must be positive"):
        start(("a",), intercept=False, public=None, schema=None, row_bound=row_bound)


def test_rows_without_any_public_bound_are_refused() -> None:
    with pytest.raises(UnboundedData, match="need a public bound"):
        start(("a", "b"), intercept=True, public=None, schema=None, row_bound=None)
    for schema in (Schema({"a": Numeric(0, 1)}), Schema({"a": Numeric(0, 1), "b": Numeric()})):
        with pytest.raises(UnboundedData, match="no public bounds for 'b'"):
            start(("a", "b"), intercept=True, public=None, schema=schema, row_bound=None)


def test_a_schema_may_be_about_other_columns(seed: int) -> None:
    """Such as the response's alone: public rows, or a bound on the norm, then bound the features."""
    schema = Schema({"y": Numeric(0, 1), "x0": Numeric(-9, 9)})
    public = PublicMoments.from_rows(rows_of(seed))
    found = start(public.names, intercept=False, public=public, schema=schema, row_bound=None)
    np.testing.assert_array_equal(found.space.whitening, from_public(public, intercept=False).whitening)
    assert start(public.names, intercept=False, public=None, schema=schema, row_bound=3.0).refinements == 3


def test_other_public_columns_are_refused() -> None:
    public = PublicMoments.from_rows(np.eye(3) + 1)
    with pytest.raises(InvalidInput, match="are not the features"):
        start(("x1", "x0", "x2"), intercept=False, public=public, schema=None, row_bound=None)


def test_few_public_rows_ask_for_refinement(seed: int) -> None:
    """Fewer than five a column: without bounds their own space is refined once."""
    for m, refinements in ((19, 1), (20, 0)):
        public = PublicMoments.from_rows(rows_of(seed, m=m))
        found = start(public.names, intercept=False, public=public, schema=None, row_bound=None)
        assert found.refinements == refinements
        assert found.instead is None


def test_bounds_are_a_better_start_than_few_public_rows(seed: int) -> None:
    schema = Schema({f"x{column}": Numeric(-1e3, 1e3) for column in range(4)})
    for m, few in ((19, True), (20, False)):
        public = PublicMoments.from_rows(rows_of(seed, m=m))
        found = start(public.names, intercept=True, public=public, schema=schema, row_bound=None)
        assert found.refinements == (3 if few else 0)
        bounded = start(public.names, intercept=True, public=None, schema=schema, row_bound=None)
        assert np.array_equal(found.space.whitening, bounded.space.whitening) is few


# ------------------------------------------------------------------ eigenvalues that rows left out contradict


def skewed(seed: int, m: int, d: int = 6) -> Matrix:
    """Log-normal columns, most of whose second moment comes from some far rows."""
    return np.asarray(np.exp(2 * np.random.default_rng(seed).normal(size=(m, d))))


@pytest.mark.parametrize("intercept", [True, False])
def test_eigenvalues_of_normal_rows_stay(intercept: bool, seed: int) -> None:
    """To the last bit those of the moment without its rows, which nothing can contradict."""
    public = PublicMoments.from_rows(rows_of(seed, m=MANY))
    assert public.mean is not None
    published = PublicMoments.from_matrix(public.second, n=public.n, mean=public.mean)
    with_rows, without = (from_public(each, intercept=intercept) for each in (public, published))
    np.testing.assert_array_equal(with_rows.whitening, without.whitening)


@pytest.mark.parametrize("intercept", [True, False])
def test_levels_of_single_rows_leave_other_eigenvalues(intercept: bool, seed: int) -> None:
    """Where a row is left out nothing tells its level, which says nothing of what other columns hardly vary in."""
    rng = np.random.default_rng(seed)
    alike = rng.normal(size=(MANY, 1)) + 0.1 * rng.normal(size=(MANY, 3))
    levels = np.zeros((MANY, 3))
    levels[[3, 50, 121], [0, 1, 2]] = 1
    public = PublicMoments.from_rows(np.column_stack([alike, levels]))
    space = from_public(public, intercept=intercept)
    product = space.whitening @ public.augmented(intercept) @ space.whitening.T
    np.testing.assert_allclose(product, np.eye(space.order), atol=1e-6)


@pytest.mark.parametrize("intercept", [True, False])
def test_eigenvalues_of_skewed_rows_are_raised(intercept: bool, seed: int) -> None:
    """None is lowered, so that no norm grows.

    The logarithm of the smallest whitened one has a standard deviation of .2 about log(.36) (600 other runs): 0 is
    five of them away.
    """
    rows = skewed(seed, 100)
    public = PublicMoments.from_rows(rows)
    space = from_public(public, intercept=intercept)
    values = np.linalg.eigvalsh(space.whitening @ public.augmented(intercept) @ space.whitening.T)
    assert values[-1] <= 1 + 1e-9
    assert values[0] < 0.999
    fresh = skewed(seed + 1, 1_000)
    published = from_public(PublicMoments.from_matrix(public.second, n=public.n, mean=public.mean), intercept=intercept)
    assert (norms(space, fresh) <= norms(published, fresh) * (1 + 1e-9)).all()


def test_few_skewed_rows_leave_bounds_as_another_start(seed: int) -> None:
    """Fewer than ten a column, whose mean squared norm is above 1.4 medians; uniform rows are no such case.

    The logarithm of that ratio has a standard deviation of .17 about log(4.5) for these skewed rows (600 other runs);
    for uniform rows it is 1.05, with one of .04 (3,000 runs).
    """
    uniform = np.random.default_rng(seed).uniform(-1, 1, size=(59, 6))
    schema = Schema({f"x{column}": Numeric(-1e6, 1e6) for column in range(6)})
    for rows, misleading in ((skewed(seed, 59), True), (skewed(seed, 60), False), (uniform, False)):
        public = PublicMoments.from_rows(rows)
        found = start(public.names, intercept=True, public=public, schema=schema, row_bound=None)
        assert found.refinements == 0
        assert (found.instead is not None) is misleading
        if found.instead is not None:
            assert found.instead.refinements == 3
            bounded = start(public.names, intercept=True, public=None, schema=schema, row_bound=None)
            np.testing.assert_array_equal(found.instead.space.whitening, bounded.space.whitening)
        assert start(public.names, intercept=True, public=public, schema=None, row_bound=None).instead is None


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("m", [12, 40])
def test_correlations_of_few_rows_are_shrunk(intercept: bool, m: int, seed: int) -> None:
    """By the share of Ledoit and Wolf; variances stay, and a column that does not vary has its scale."""
    rows = np.column_stack([rows_of(seed, m=m), np.full(m, 3.0 if intercept else 0.0)])
    public = PublicMoments.from_rows(rows)
    centred = rows - rows.mean(axis=0) if intercept else rows
    unit = np.append(np.sqrt(np.mean(centred[:, :4] ** 2, axis=0)), 1.0)
    space = Root.shrunk(public, intercept, np.append(50 * unit[:4], 7.0)).space()
    slopes = space.whitening[intercept:, intercept:]
    scaled = centred / unit
    second = scaled.T @ scaled / m
    error = np.mean([np.sum((np.outer(row, row) - second) ** 2) for row in scaled]) / m
    share = min(error / np.sum((second - np.diag(np.diag(second))) ** 2), 1.0)
    expected = (1 - share) * second + share * np.diag(np.diag(second))
    expected[4, 4] = 7.0**2
    np.testing.assert_allclose(slopes @ (expected * np.outer(unit, unit)) @ slopes.T, np.eye(5), atol=1e-9)


@pytest.mark.parametrize("bounded", [True, False])
def test_few_rows_or_skewed_ones_are_another_start(bounded: bool, seed: int) -> None:
    """Fewer than five a column, or ten that are skewed; never fewer than ten in all, nor of a moment alone."""
    schema = Schema({f"x{column}": Numeric(-50, 50) for column in range(6)}) if bounded else None
    normal = np.random.default_rng(seed).normal(size=(59, 6))
    for rows, few in ((normal[:29], True), (normal[:30], False), (normal[:9], False), (skewed(seed, 59), bounded)):
        public = PublicMoments.from_rows(rows)
        found = start(public.names, intercept=True, public=public, schema=schema, row_bound=None)
        assert (found.shrunk is not None) is few
        if found.shrunk is not None:
            assert found.shrunk.refinements == 1
            space = found.shrunk.space
            assert space.radius == pytest.approx(np.median(norms(space, rows)))
    public = PublicMoments.from_rows(normal[:29])
    assert public.mean is not None
    published = PublicMoments.from_matrix(public.second, n=29, mean=public.mean)
    assert start(public.names, intercept=True, public=published, schema=schema, row_bound=None).shrunk is None


def test_missing_cells_of_every_start_count_as_the_schema_says(seed: int) -> None:
    schema = Schema({f"x{column}": Numeric(-10, 10, fill=4.0) for column in range(6)})
    public = PublicMoments.from_rows(np.random.default_rng(seed).normal(size=(29, 6)))
    found = start(public.names, intercept=True, public=public, schema=schema, row_bound=None)
    assert found.shrunk is not None
    np.testing.assert_array_equal(found.shrunk.space.fill, 4.0)


def test_columns_that_few_rows_tell_have_the_scale_of_the_schema(seed: int) -> None:
    """An amount that one of twelve rows has, and a column a thousand times narrower than its bounds."""
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.normal(size=12), np.append(0.01, np.zeros(11)), 1e-3 * rng.normal(size=12)])
    public = PublicMoments.from_rows(rows)
    root = Root.shrunk(public, True, np.array([3.0, 50.0, 1.0]))
    lengths = np.linalg.norm(root.space().whitening[1:, 1:], axis=0)
    assert lengths[1] == pytest.approx(1 / 50)
    assert lengths[2] < 2 * 100 / 1.0 < 1 / rows[:, 2].std()
    schema = Schema({"x0": Numeric(-3, 3), "x1": Numeric(0, 100), "x2": Numeric(-1, 1)})
    for bounds, refinements in ((schema, 3), (None, 1)):
        found = start(public.names, intercept=True, public=public, schema=bounds, row_bound=None)
        assert found.shrunk is not None
        assert found.shrunk.refinements == refinements


@pytest.mark.parametrize(("rare", "refinements"), [(0.0, 1), (1.0, 1), (0.03, 3)])
def test_indicators_that_few_rows_have_need_no_more_than_one_refinement(
    rare: float, refinements: int, seed: int
) -> None:
    """Declared as a number, it is 1 in one public row of 80 or in none; an amount of .03 is far from its bounds."""
    rows = np.random.default_rng(seed).normal(size=(80, 20))
    rows[:, -1] = np.append(rare, np.zeros(79))
    public = PublicMoments.from_rows(rows)
    schema = Schema({**{f"x{place}": Numeric(-6, 6) for place in range(19)}, "x19": Numeric(0, 1)})
    found = start(public.names, intercept=True, public=public, schema=schema, row_bound=None)
    assert found.shrunk is not None
    assert found.shrunk.refinements == refinements


@pytest.mark.parametrize("size", [0.0, 1e-120])
def test_rows_that_give_no_start_leave_that_from_bounds(size: float) -> None:
    public = PublicMoments.from_rows(np.full((12, 3), size) * np.arange(1, 13)[:, None])
    schema = Schema({f"x{column}": Numeric(-1, 1) for column in range(3)})
    found = start(public.names, intercept=False, public=public, schema=schema, row_bound=None)
    assert found.refinements == 3
