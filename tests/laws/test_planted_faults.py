"""The laws catch what they are for: each fault is planted in the source and the named law must refuse it.

Among them are faults seen in respected libraries: a sensitivity from the wrong bound, a ledger copied by ``clone``,
a budget that nobody compares with what was spent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpregress import VerticalRegression
from dpregress.accounting import (
    GDP,
    ZCDP,
    Charge,
    Composed,
    Ledger,
    MemoryLedger,
    Relation,
    Reservation,
    Unit,
)
from dpregress.accounting import ledger as ledger_module
from dpregress.accounting import reservation as reservation_module
from dpregress.coordinates import WhitenedSpace, svec
from dpregress.coordinates.exact import FINE, ExactVector
from dpregress.mechanisms import CURATOR_MECHANISMS, DiscreteLaplace, Exponential, Gaussian, SeededSampler
from dpregress.mechanisms import gaussian as gaussian_module
from dpregress.mechanisms.base import exact_total
from dpregress.queries import (
    BinomialInformation,
    ClippedScore,
    MeanResidual,
    Norm,
    PublishedHessian,
    Query,
    ResidualHistogram,
    ScoreSquares,
    SecondMoment,
)
from dpregress.queries.pair_tables import Blocks, CentredTables, CliqueQuery, ModelErrors, PairDistances
from dpregress.releases import Isotropic
from dpregress.rows import BoundedRows, CappedSource, LevelRows, RawRows, RowMap, WhitenedRows, bounded
from dpregress.rows import codes as codes_module
from dpregress.rows import units as units_module
from dpregress.solvers.marginals.aim import AIM
from dpregress.trust import Local, TrustModel
from tests.audit.auditor import check_audit
from tests.laws import test_accounting as accounting
from tests.laws import test_coded as coded
from tests.laws import test_limits as limits
from tests.laws import test_noise as noise
from tests.laws import test_row_map as row_map
from tests.laws import test_sensitivity as sensitivity
from tests.laws import test_units as units
from tests.registry import (
    CODED_QUERIES,
    DOMAINS,
    ESTIMATORS,
    FITS,
    LEDGERS,
    MECHANISMS,
    QUERIES,
    SOLVERS,
    SPACES,
    TABLE_SOLVERS,
    TRUST,
    QueryEntry,
    gaussian,
)

Patch = pytest.MonkeyPatch
Law = Callable[[int, Path], None]


def query(name: str) -> QueryEntry:
    return next(entry for entry in QUERIES if entry.name == name)


# ---------------------------------------------------------------- the laws, as calls without parameters


def sensitivity_of(name: str) -> Law:
    return lambda seed, _: sensitivity.check_sensitivity(query(name), "plain", seed)


def noise_of(name: str) -> Law:
    def law(seed: int, _: Path) -> None:
        sampler = SeededSampler(np.random.default_rng(seed))
        noise.check_noise(query(name), "plain", gaussian(), sampler, seed)

    return law


def noise_of_counts(seed: int, _: Path) -> None:
    counts = next(entry for entry in MECHANISMS if entry.kind is DiscreteLaplace)
    noise.check_noise(query("usable rows"), "plain", counts, SeededSampler(np.random.default_rng(seed)), seed)


def every_party_paid(seed: int, _: Path) -> None:
    accounting.check_charges_first(next(entry for entry in FITS if entry.kind is VerticalRegression), seed)


def noise_of_local(seed: int, _: Path) -> None:
    local = next(entry for entry in TRUST if entry.draws(4) == 4)
    sampler = SeededSampler(np.random.default_rng(seed))
    answer = noise.answer_of_trust(local, gaussian())
    noise.check_noise(query("joint second moment"), "plain", gaussian(), sampler, seed, answer=answer, draws=noise.ROWS)


def matrix_entries(seed: int, _: Path) -> None:
    noise.check_matrix_entries(SeededSampler(np.random.default_rng(seed)), seed)


def ball(seed: int, _: Path) -> None:
    space = SPACES["plain"](np.random.default_rng(seed))
    row_map.check_ball(WhitenedRows, space, row_map.raw_rows(space, seed))


def rows_alone(seed: int, _: Path) -> None:
    space = SPACES["plain"](np.random.default_rng(seed))
    row_map.check_rows_alone(WhitenedRows, space, row_map.raw_rows(space, seed))


def unit_sensitivity(seed: int, _: Path) -> None:
    units.check_reached(query("second moment"), "plain", seed)


def unit_rule(seed: int, _: Path) -> None:
    units.check_rule(seed)


def unit_promise(seed: int, _: Path) -> None:
    units.check_promise(ESTIMATORS[0], seed)


def additivity(seed: int, _: Path) -> None:
    sensitivity.check_additivity(query("joint second moment"), "plain", seed)


def promise(seed: int, _: Path) -> None:
    accounting.check_promise(ESTIMATORS[0], seed)


def order(seed: int, _: Path) -> None:
    accounting.check_order(ESTIMATORS[0], seed)


def clones(seed: int, folder: Path) -> None:
    accounting.check_clones_share(LEDGERS[0], folder, seed)


def refusal(seed: int, folder: Path) -> None:
    accounting.check_refusal(LEDGERS[0], folder, seed)


def one_bound(_: int, __: Path) -> None:
    accounting.test_whoever_chooses_after_an_outcome_meets_one_bound(GDP(0.1))


def no_overdraft(_: int, __: Path) -> None:
    accounting.check_no_overdraft()


def composition(seed: int, _: Path) -> None:
    accounting.check_composition(seed)


def limit(seed: int, _: Path) -> None:
    limits.check_moments(0.5, True, seed)


def public_matrix(seed: int, _: Path) -> None:
    limits.check_public_matrix(SOLVERS[0], 3.0, seed)


def audit(seed: int, _: Path) -> None:
    check_audit(TRUST[0], query("joint second moment"), seed)


def coded_sensitivity_of(name: str, domain: str) -> Law:
    entry = next(entry for entry in CODED_QUERIES if entry.name == name)
    return lambda seed, _: coded.check_sensitivity(entry, DOMAINS[domain], seed)


def coded_noise(seed: int, _: Path) -> None:
    coded.check_noise(CODED_QUERIES[0], DOMAINS["mixed"], seed)


def choice(seed: int, _: Path) -> None:
    coded.test_choice(None, seed)


def aim_draws(seed: int, _: Path) -> None:
    entry = next(entry for entry in TABLE_SOLVERS if entry.kind is AIM)
    coded.test_draws_are_the_promise(entry, "classes", seed)


def level_rows(seed: int, _: Path) -> None:
    coded.test_level_rows("mixed", seed)


def cells_alone(seed: int, _: Path) -> None:
    coded.test_cells_alone(seed)


# ---------------------------------------------------------------- the faults


def radius_for_joint_radius(patch: Patch) -> None:
    patch.setattr(SecondMoment, "contribution", lambda self: self.space.radius**2)
    patch.setattr(SecondMoment, "replacement", lambda self: math.sqrt(2) * self.space.radius**2)


def radius_not_squared(patch: Patch) -> None:
    patch.setattr(SecondMoment, "contribution", lambda self: self.space.joint_radius)
    patch.setattr(SecondMoment, "replacement", lambda self: math.sqrt(2) * self.space.joint_radius)


def score_bound_not_squared(patch: Patch) -> None:
    patch.setattr(ScoreSquares, "contribution", lambda self: self.bound)
    patch.setattr(ScoreSquares, "replacement", lambda self: math.sqrt(2) * self.bound)


def scores_not_shortened(patch: Patch) -> None:
    def exact(self: ScoreSquares, rows: BoundedRows) -> ExactVector:
        each = self.score.each(rows)
        return ExactVector(np.ones(self.size, dtype=np.int64), svec.svec(each.T @ each))

    patch.setattr(ScoreSquares, "exact", exact)


def variance_for_deviation(patch: Patch) -> None:
    patch.setattr(BinomialInformation, "contribution", lambda self: (0.25 * self.space.radius) ** 2)


def removal_for_replacement(patch: Patch) -> None:
    patch.setattr(Query, "sensitivity", lambda self, relation: self.contribution())  # noqa: ARG005 - that is the fault


def score_of_one_direction(patch: Patch) -> None:
    patch.setattr(ClippedScore, "replacement", lambda self: math.sqrt(2) * self.space.radius * self.clip)


def longer_side_for_width(patch: Patch) -> None:
    patch.setattr(MeanResidual, "replacement", MeanResidual.contribution)


def one_bin_for_two(patch: Patch) -> None:
    patch.setattr(ResidualHistogram, "replacement", ResidualHistogram.contribution)


def residual_not_clipped(patch: Patch) -> None:
    def unclipped(_: MeanResidual, rows: BoundedRows) -> ExactVector:
        return ExactVector(np.array([1]), float(rows.y.sum()))

    patch.setattr(MeanResidual, "exact", unclipped)


def hessian_of_any_curvature(patch: Patch) -> None:
    make = PublishedHessian.__init__

    def larger(self: PublishedHessian, *arguments: Any) -> None:
        make(self, *arguments)
        vars(self)["largest"], self.stated = math.inf, self.largest  # type: ignore[attr-defined]

    patch.setattr(PublishedHessian, "__init__", larger)
    patch.setattr(PublishedHessian, "replacement", lambda self: 2 * self.space.radius**2 * self.stated)
    patch.setattr(PublishedHessian, "contribution", lambda self: self.space.radius**2 * self.stated)


def bound_never_reached(patch: Patch) -> None:
    patch.setattr(SecondMoment, "replacement", lambda self: 2 * self.space.joint_radius**2)


def off_diagonal_unscaled(patch: Patch) -> None:
    layout = svec._layout
    patch.setattr(svec, "_layout", lambda order: (*layout(order)[:2], np.ones(svec.length(order))))


def inverted_noise(patch: Patch) -> None:
    def release(self: Gaussian, query: Query[Any], rows: Any, sampler: Any, relation: Relation) -> Any:
        sigma = self.spend.mu / query.sensitivity(relation)
        noisy = sampler.add_gaussian(exact_total(query, rows), sigma)
        return query.read(noisy, n=rows.n, noise=Isotropic(sigma), events=(self.spend,))

    patch.setattr(Gaussian, "release", release)


def noise_of_half_the_scale(patch: Patch) -> None:
    whole = gaussian_module.float_sensitivity
    patch.setattr(gaussian_module, "float_sensitivity", lambda *arguments: whole(*arguments) / 2)


def users_add_one_noise(patch: Patch) -> None:
    patch.setattr(Local, "mechanisms", CURATOR_MECHANISMS)


def half_the_noise_on_counts(patch: Patch) -> None:
    scale = DiscreteLaplace._scale
    patch.setattr(DiscreteLaplace, "_scale", lambda self, *arguments: scale(self, *arguments) / 2)


def sensitivity_in_another_norm(patch: Patch) -> None:
    patch.setattr(ModelErrors, "norm", Norm.L2)


def second_party_uncharged(patch: Patch) -> None:
    reserve = Ledger.reserve

    def only_first(self: Ledger, event: Any, **more: Any) -> Reservation:
        free = "2 columns" in more.get("note", "")
        return Reservation(event, more["relation"]) if free else reserve(self, event, **more)

    patch.setattr(Ledger, "reserve", only_first)


def truncation_forgotten(patch: Patch) -> None:
    mapped = WhitenedRows.__call__

    def whitened_only(self: WhitenedRows, rows: Any, words: int = FINE) -> BoundedRows:
        inside = mapped(self, rows, words)
        weight = np.maximum(inside.weight, 1e-6)  # some of it kept, so that no product overflows
        return BoundedRows(inside.x / weight[:, None], inside.y, inside.weight, inside.first_row)

    patch.setattr(WhitenedRows, "__call__", whitened_only)


def response_not_clipped(patch: Patch) -> None:
    patch.setattr(bounded, "_bounded_response", lambda y, known, *_: np.where(known, y, 0.0))


def rows_centred_by_their_chunk(patch: Patch) -> None:
    mapped = WhitenedRows.__call__

    def centred(self: WhitenedRows, rows: Any, words: int = FINE) -> BoundedRows:
        inside = mapped(self, rows, words)
        return BoundedRows(
            (inside.x - inside.x.sum(axis=0) / max(len(inside.x), 1)) / 2, inside.y, inside.weight, inside.first_row
        )

    patch.setattr(WhitenedRows, "__call__", centred)


def ledger_copied(patch: Patch) -> None:
    def deepcopy(self: MemoryLedger, memo: dict[int, Any]) -> MemoryLedger:  # noqa: ARG001
        twin = MemoryLedger(self.account.budget, self.account.dataset)
        twin._charges = list(self._charges)
        return twin

    patch.setattr(MemoryLedger, "__deepcopy__", deepcopy)


def budget_unchecked(patch: Patch) -> None:
    patch.setattr(Ledger, "_refuse_if_over", lambda *_: None)


def everything_covered(patch: Patch) -> None:
    patch.setattr(GDP, "covers", lambda self, spent: True)  # noqa: ARG005 - that is the fault


def bound_chosen_after_outcomes(patch: Patch) -> None:
    patch.setattr(ledger_module, "covers_adaptive", lambda budget, spent: budget.covers(Composed.of(spent)))


def charge_kept_after_refusal(patch: Patch) -> None:
    append = MemoryLedger._append

    def append_first(self: MemoryLedger, charge: Charge, **options: Any) -> None:
        try:
            append(self, charge, **options)
        except Exception:
            self._charges.append(charge)
            raise

    patch.setattr(MemoryLedger, "_append", append_first)


def linear_composition(patch: Patch) -> None:
    patch.setattr(Composed, "mu", property(lambda self: math.fsum(part.mu for part in self.parts)))


def draw_skipped(patch: Patch) -> None:
    patch.setattr(Reservation, "draw", lambda self, event: None)  # noqa: ARG005 - that is the fault


def draw_after_noise(patch: Patch) -> None:
    def release(self: TrustModel, rows: Any, query: Any, spend: Any, *, sampler: Any, reservation: Any) -> Any:
        mechanism = self.mechanism(query, spend, rows)
        answer = mechanism.release(query, rows, sampler, reservation.relation)
        reservation.draw(mechanism.event())
        return answer

    patch.setattr(TrustModel, "release", release)


def charge_after_noise(patch: Patch) -> None:
    released = TrustModel.release

    def reserve(
        self: Ledger, event: Any, *, relation: Relation = Relation.REPLACE_ONE, note: str = "", **_: Any
    ) -> Reservation:
        reservation = Reservation(event, relation, self.location)
        vars(reservation)["charge_later"] = lambda: self._append(Charge(event, note, ""))
        return reservation

    def release(self: TrustModel, *arguments: Any, reservation: Any, **parameters: Any) -> Any:
        answer = released(self, *arguments, reservation=reservation, **parameters)
        vars(reservation).pop("charge_later", lambda: None)()  # with the first of several releases
        return answer

    patch.setattr(Ledger, "reserve", reserve)
    patch.setattr(TrustModel, "release", release)


def whitening_not_undone(patch: Patch) -> None:
    def pull_back(self: WhitenedSpace, whitened: Any) -> tuple[Any, float]:
        return (whitened[1:], float(whitened[0])) if self.intercept else (whitened, 0.0)

    patch.setattr(WhitenedSpace, "pull_back", pull_back)


def every_row_counts(patch: Patch) -> None:
    patch.setattr(CappedSource, "pieces", lambda self, rows: self.rows.pieces(rows))


def uncounted_rows_not_zeroed(patch: Patch) -> None:
    patch.setattr(RowMap, "__call__", lambda self, rows, words=FINE: self._bound(rows, words))


def rows_without_a_unit_count(patch: Patch) -> None:
    found = units_module._occurrence

    def occurrence(keys: Any, seen: dict[bytes, int], most: int) -> Any:
        return np.where(np.asarray(keys.is_null()), 0, found(keys, seen, most))

    patch.setattr(units_module, "_occurrence", occurrence)


def a_unit_draws_like_a_row(patch: Patch) -> None:
    patch.setattr(Unit, "most", property(lambda self: 1))  # noqa: ARG005 - that is the fault


def draws_not_k_fold(patch: Patch) -> None:
    patch.setattr(reservation_module, "group", lambda event, rows: event)  # noqa: ARG005 - that is the fault


def one_table_for_all(patch: Patch) -> None:
    patch.setattr(Blocks, "contribution", lambda self: max(self.weights))


def one_cell_for_two(patch: Patch) -> None:
    patch.setattr(Blocks, "replacement", Blocks.contribution)


def sums_of_size_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("dpregress.queries.pair_tables.largest_norm", lambda _: 1.0)


def numbers_of_size_one(patch: Patch) -> None:
    patch.setattr(CliqueQuery, "unit", lambda self, clique: 1.0)  # noqa: ARG005 - that is the fault


def residual_of_n_forgotten(patch: Patch) -> None:
    whole = CentredTables.contribution
    patch.setattr(CentredTables, "contribution", lambda self: math.sqrt(whole(self) ** 2 - self._count_weight**2))


def independence_from_the_rows(patch: Patch) -> None:
    def statistic(self: PairDistances, total: Any) -> Any:
        blocks = self.blocks(total)
        own = [np.outer(b.sum(axis=1), b.sum(axis=0)) / max(abs(b.sum()), 1.0) for b in blocks]
        return self._scales * np.array([np.abs(b - e).sum() for b, e in zip(blocks, own, strict=True)])

    patch.setattr(PairDistances, "statistic", statistic)


def qualities_unweighted(patch: Patch) -> None:
    patch.setattr(ModelErrors, "contribution", lambda self: 1.0)  # noqa: ARG005 - that is the fault


def choice_of_twice_the_epsilon(patch: Patch) -> None:
    whole = Exponential._scale
    patch.setattr(Exponential, "_scale", lambda *arguments: whole(*arguments) / 2)


def choice_uncharged(patch: Patch) -> None:
    patch.setattr(Exponential, "event", lambda self: ZCDP(1e-12))  # noqa: ARG005 - that is the fault


def choice_unpaid(patch: Patch) -> None:
    draw = Reservation.draw
    patch.setattr(Reservation, "draw", lambda self, event: isinstance(event, ZCDP) or draw(self, event))


def count_told(patch: Patch) -> None:
    patch.setattr(gaussian_module, "public_count", lambda rows, _: rows.n)


def mean_for_unknown(patch: Patch) -> None:
    def bound(self: LevelRows, rows: RawRows, words: int) -> BoundedRows:  # noqa: ARG001
        codes = np.floor(rows.x)
        for place, top in enumerate(self.domain.sizes):
            known = (codes[:, place] >= 0) & (codes[:, place] < top)
            codes[~known, place] = np.floor(codes[known, place].mean()) if known.any() else 0
        return BoundedRows(codes, np.zeros(len(codes)), np.ones(len(codes)), rows.first_row)

    patch.setattr(LevelRows, "_bound", bound)


def bins_of_the_rows(patch: Patch) -> None:
    def binned(cells: Any, attribute: Any) -> Any:
        inside = np.clip(np.nan_to_num(cells), *attribute.edges)
        edges = np.quantile(inside, np.linspace(0, 1, attribute.size + 1)[1:-1])
        return np.searchsorted(edges, inside, side="right").astype(np.float64)

    patch.setattr(codes_module, "_binned", binned)


def levels_of_the_rows(patch: Patch) -> None:
    def codes(column: Any, attribute: Any) -> Any:
        return np.unique(np.array([str(cell) for cell in column]), return_inverse=True)[1] % float(attribute.size)

    patch.setattr(codes_module, "_codes", codes)


#: Fault, and the law that must catch it.
FAULTS: dict[str, tuple[Callable[[Patch], None], Law]] = {
    "the radius where the joint radius is needed": (radius_for_joint_radius, sensitivity_of("joint second moment")),
    "R for R squared": (radius_not_squared, sensitivity_of("second moment")),
    "K for K squared": (score_bound_not_squared, sensitivity_of("squares of scores")),
    "1/4 for 1/2": (variance_for_deviation, sensitivity_of("information of classes")),
    "scores beyond their bound": (scores_not_shortened, sensitivity_of("squares of scores")),
    "add-remove for replace-one, moments": (removal_for_replacement, sensitivity_of("second moment")),
    "add-remove for replace-one, scores": (removal_for_replacement, sensitivity_of("Gaussian score")),
    "opposite scores forgotten": (score_of_one_direction, sensitivity_of("Binomial score")),
    "a loose bound called tight": (bound_never_reached, sensitivity_of("second moment")),
    "one side of a lopsided clip": (longer_side_for_width, sensitivity_of("mean residual")),
    "a mean residual without its clip": (residual_not_clipped, sensitivity_of("mean residual")),
    "one bin where two change": (one_bin_for_two, sensitivity_of("residual histogram")),
    "a curvature without its bound": (hessian_of_any_curvature, sensitivity_of("Poisson Hessian")),
    "svec without the root of two": (off_diagonal_unscaled, matrix_entries),
    "svec without the root of two, all entries": (off_diagonal_unscaled, noise_of("joint second moment")),
    "mu over Delta": (inverted_noise, noise_of("second moment")),
    "half the noise": (noise_of_half_the_scale, noise_of("Gaussian score")),
    "one noise for n users": (users_add_one_noise, noise_of_local),
    "half the noise on counts": (half_the_noise_on_counts, noise_of_counts),
    "a sensitivity in another norm": (sensitivity_in_another_norm, coded_sensitivity_of("model errors", "classes")),
    "a party that is not charged": (second_party_uncharged, every_party_paid),
    "truncation forgotten, rows": (truncation_forgotten, ball),
    "truncation forgotten, sensitivity": (truncation_forgotten, sensitivity_of("second moment")),
    "response not clipped": (response_not_clipped, ball),
    "rows centred by their chunk": (rows_centred_by_their_chunk, rows_alone),
    "rows centred by their chunk, sums": (rows_centred_by_their_chunk, additivity),
    "a ledger copied by clone": (ledger_copied, clones),
    "no budget check": (budget_unchecked, refusal),
    "a budget that covers everything": (everything_covered, refusal),
    "a reservation that covers everything": (everything_covered, no_overdraft),
    "the smaller of two bounds after an outcome": (bound_chosen_after_outcomes, one_bound),
    "a refused charge that stays": (charge_kept_after_refusal, refusal),
    "linear composition": (linear_composition, composition),
    "the draw skipped": (draw_skipped, promise),
    "the draw after the noise": (draw_after_noise, order),
    "the charge after the noise": (charge_after_noise, order),
    "whitening not undone": (whitening_not_undone, limit),
    "whitening not undone, two matrices": (whitening_not_undone, public_matrix),
    "mu over Delta, audited": (inverted_noise, audit),
    "half the noise, audited": (noise_of_half_the_scale, audit),
    "truncation forgotten, audited": (truncation_forgotten, audit),
    "every row of a unit counts": (every_row_counts, unit_sensitivity),
    "rows beyond k not zeroed": (uncounted_rows_not_zeroed, unit_sensitivity),
    "rows without a unit count": (rows_without_a_unit_count, unit_rule),
    "a unit charged like a row": (a_unit_draws_like_a_row, unit_promise),
    "draws of a unit not k-fold": (draws_not_k_fold, unit_promise),
    "one table's sensitivity for all tables": (one_table_for_all, coded_sensitivity_of("one-way tables", "classes")),
    "one cell where two change": (one_cell_for_two, coded_sensitivity_of("weighted blocks", "classes")),
    "sums of a number and its square of size one": (
        sums_of_size_one,
        coded_sensitivity_of("rows, sums and a table", "numbers"),
    ),
    "products of numbers of size one": (numbers_of_size_one, coded_sensitivity_of("weighted blocks", "numbers")),
    "n beside the residuals forgotten": (residual_of_n_forgotten, coded_sensitivity_of("centred tables", "mixed")),
    "independence of the rows themselves": (
        independence_from_the_rows,
        coded_sensitivity_of("pair distances", "classes"),
    ),
    "qualities without their weight": (qualities_unweighted, coded_sensitivity_of("model errors", "classes")),
    "a choice of twice the epsilon": (choice_of_twice_the_epsilon, choice),
    "AIM's choices at no price": (choice_uncharged, aim_draws),
    "AIM's choices not drawn": (choice_unpaid, aim_draws),
    "a private n told": (count_told, coded_noise),
    "the mean level for an unknown one": (mean_for_unknown, level_rows),
    "bins at the rows' quantiles": (bins_of_the_rows, cells_alone),
    "levels from the rows": (levels_of_the_rows, cells_alone),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_caught(fault: str, monkeypatch: Patch, tmp_path: Path, seed: int) -> None:
    """Missed with probability 1e-9 at most: the planted scales are many standard deviations off."""
    plant, law = FAULTS[fault]
    law(seed, tmp_path)  # without the fault it holds
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        law(seed, tmp_path)
