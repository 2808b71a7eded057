r"""What a study will tell, before it is paid for: standard errors, power, and the rows or the budget that it needs.

A plan fits the library's own estimators to artificial rows, which are made from public rows or from a schema, and reads
their standard errors. Nothing private is touched, and no ledger is charged. Large studies are planned on fewer rows at
the same n mu: the variance due to privacy noise depends on n mu alone, and that due to sampling is in inverse
proportion to n.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpregress.accounting import GDP, Event, gaussian_promise
from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.errors import InvalidInput, NotAvailable, check_choice, did_you_mean, one_line
from dpregress.estimators import DPLinearRegression, LocalGLM, VerticalRegression
from dpregress.estimators.families import estimator_of
from dpregress.estimators.glm import DPGLMRegressor
from dpregress.estimators.parameters import checked_budget
from dpregress.experiments.study_plan import Plan
from dpregress.inputs.formula import open_public, read_columns
from dpregress.inputs.names import check_target, listed
from dpregress.inputs.public import moments_of, public_columns
from dpregress.models import Family, family_of
from dpregress.public import Categorical, Numeric, PublicMoments, Schema
from dpregress.releases.estimates import INTERCEPT
from dpregress.rows import Encoder
from dpregress.rows.design.encoder import to_numbers, undictionaried
from dpregress.solvers.shared.likely_rows import likely_rows
from dpregress.solvers.shared.public_fit import fit_public

#: Artificial rows of a fit, at most.
_ROWS = 20_000
#: Without assumptions about a column, its standard deviation as a share of its range.
_SPREAD = 0.25
TRUSTS = ("central", "local", "vertical")


class _Population(NamedTuple):
    """Artificial rows as a table with the response, and what is public of them."""

    names: tuple[str, ...]
    columns: tuple[str, ...]
    rows: Callable[[int, np.random.Generator], pa.Table]
    public: Any
    schema: Schema | None
    basis: str


def plan(
    n: int,
    privacy: Event,
    *,
    public: Any = None,
    schema: Schema | None = None,
    target: str = "y",
    features: Sequence[str] | None = None,
    family: str = "gaussian",
    response: tuple[float, float] | None = None,
    explained: float = 0.2,
    assume: Mapping[str, tuple[float, float]] | None = None,
    trust: Sequence[str] = ("central",),
    repeats: int = 3,
    seed: int = 0,
) -> Plan:
    """Plan a study from public facts; nothing private is read, and nothing is charged.

    Parameters
    ----------
    n : int
        Private rows that will be fitted.
    privacy : Event
        The budget.
    public : PublicMoments, table or file, optional
        Public rows; with labels they are the most accurate basis.
    schema : Schema, optional
        Bounds and levels; without public rows, of all features.
    target : str
    features : sequence of str, optional
        Default: all other columns of the public rows, or of the schema.
    family : str
        As of :class:`DPGLMRegressor`, with its default link. "gaussian" is least squares.
    response : (float, float), optional
        Assumed mean and standard deviation of the response; needed where there are no public labels.
    explained : float
        Assumed share of the response's variance that the features explain, where there are no public labels.
    assume : mapping of str to (float, float), optional
        Assumed mean and standard deviation of design columns, where there are no public rows.
    trust : sequence of {"central", "local", "vertical"}
        Vertical: two parties hold half of the columns each, the second with the response.
    repeats : int
        Artificial tables, whose median is taken.
    seed : int
        Of the artificial rows and their noise.

    Raises
    ------
    InvalidInput
        For facts that do not suffice.
    NotAvailable
        If a trust model offers no standard errors for this family or so few rows.

    Examples
    --------
    >>> import numpy as np
    >>> from dpregress import ApproxDP, PublicMoments, plan
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2)); y = X @ [1.0, 2.0] + rng.normal(size=300)
    >>> found = plan(10_000, ApproxDP(1.0, 1e-6), public=PublicMoments.from_rows(X, y))
    >>> bool(0.01 < found.bse()[1] < 0.02)
    True
    """
    gaussian_promise(checked_budget(privacy))
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 10:
        raise InvalidInput(f"n is a whole number of rows of at least 10, not {one_line(n)}")
    _check_options(trust, repeats, seed)
    kind = family_of(family)
    if not 0 <= explained < 1:
        raise InvalidInput(f"explained= is a share of the variance, from 0 to below 1, not {one_line(explained)}")
    assumed = None if response is None else _Assumed(kind, *_checked_response(response), explained)
    _check_target(target, public, schema)
    population = _population(assumed, public, schema, target, features, assume or {}, family != "binomial")

    def pilot(model: str, rows: int, budget: Event) -> tuple[Vector, Vector]:
        found = [_piloted(population, kind, target, model, rows, budget, seed + turn) for turn in range(repeats)]
        sampling, noise = (np.median([run[part] for run in found], axis=0) for part in (0, 1))
        return np.asarray(sampling), np.asarray(noise)

    errors = {model: pilot(model, int(n), privacy) for model in trust}
    return Plan(
        (INTERCEPT, *population.names), int(n), privacy, family, population.basis,
        {model: each[0] for model, each in errors.items()}, {model: each[1] for model, each in errors.items()}, pilot,
    )  # fmt: skip


def _check_options(trust: Any, repeats: Any, seed: Any) -> None:
    """Refuse trust models, repeats and seeds that there are not."""
    if isinstance(trust, str) or not isinstance(trust, Sequence) or not all(isinstance(each, str) for each in trust):
        raise InvalidInput(f'trust= takes a list of trust models, such as ["central", "local"], not {one_line(trust)}')
    for each in trust:
        check_choice("trust", each, TRUSTS)
    for name, given, least in (("repeats", repeats, 1), ("seed", seed, 0)):
        if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < least:
            raise InvalidInput(f"{name}= takes a whole number of at least {least}, not {one_line(given)}")


def _check_target(target: Any, public: Any, schema: Schema | None) -> None:
    """Refuse a response that a schema does not have: the real one would be planned as a feature."""
    check_target(target)
    if public is not None or schema is None or target == "y" or schema.column(target) is not None:
        return  # "y" is the default, of a schema of the features alone
    mend = did_you_mean(target, schema.columns, f"it declares {', '.join(list(schema.columns)[:12])}")
    raise InvalidInput(f"no column {target!r} in the schema: {mend}")


def _population(
    assumed: _Assumed | None,
    public: Any,
    schema: Schema | None,
    target: str,
    features: Sequence[str] | None,
    assume: Mapping[str, tuple[float, float]],
    numeric: bool,
) -> _Population:
    """Artificial rows that look like public ones, or like the schema and the assumptions say."""
    if public is not None:
        return _public_population(assumed, public, schema, target, features, numeric)
    if schema is None:
        raise InvalidInput("give public= rows, or a schema= with bounds of all columns")
    columns = [name for name in schema.columns if name != target] if features is None else listed(features)
    encoder = Encoder.of(columns, None, schema)
    names = encoder.features
    if not schema.bounds_all(names):
        raise InvalidInput("a plan without public rows needs bounds or levels of all columns in the schema")
    model, declared = _known(assumed), {name: Numeric(*schema.bounds_of(name)) for name in names}
    bounds = schema.columns.get(target)
    own = {target: bounds} if isinstance(bounds, Numeric) else {}
    moments = np.array([assume.get(name, given) for name, given in zip(names, _usual(schema, names), strict=True)])
    facts = schema

    def likely(m: int, rng: np.random.Generator) -> pa.Table:
        x = likely_rows(facts, names, rng.normal(size=(m, len(names))), moments[:, 0], moments[:, 1] ** 2)
        table = pa.table({name: np.ascontiguousarray(x[:, place]) for place, name in enumerate(names)})
        return table.append_column(target, pa.array(model.responses(x, rng)))

    return _Population(names, names, likely, None, Schema({**declared, **own}), "a schema and assumed moments")


def _usual(schema: Schema, names: tuple[str, ...]) -> list[tuple[float, float]]:
    """Mean and standard deviation of each design column if nothing is assumed: all levels of a column are as frequent.

    Indicators at the middle of their bounds would leave no row for the reference of three levels.
    """
    usual = [((low + high) / 2, _SPREAD * (high - low)) for low, high in map(schema.bounds_of, names)]
    for places in schema.indicator_places(names).values():
        share = 1 / (len(places) + 1)
        for place in places:
            usual[place] = share, math.sqrt(share * (1 - share))
    return usual


def _public_population(
    assumed: _Assumed | None,
    public: Any,
    schema: Schema | None,
    target: str,
    features: Sequence[str] | None,
    numeric: bool,
) -> _Population:
    """Rows drawn from public ones with replacement, with their responses or assumed ones."""
    known = open_public(public)
    if isinstance(known, PublicMoments):
        if known.rows is None:
            raise InvalidInput("public moments have no rows to plan with: give the public rows themselves")
        table = pa.table(dict(zip(known.names, np.ascontiguousarray(known.rows.T), strict=True)))
        table = table if known.labels is None else table.append_column(target, pa.array(known.labels))
    else:
        names = public_columns(known)
        table = read_columns(known, names)
    others = [name for name in table.schema.names if name != target]
    columns = tuple(others if features is None else listed(features))
    encoder = Encoder.of(columns, None, schema)
    encoder.check_types(table.schema)
    labelled = target in table.schema.names and assumed is None
    model = None if labelled else _known(assumed)
    whole = table.select([*columns, *([target] if labelled else [])])
    if labelled and numeric:  # a column of a CSV file has no type
        place = whole.schema.names.index(target)
        whole = whole.set_column(place, target, pa.array(to_numbers(whole[target])))

    chances = None if numeric or not labelled else _fitted_chances(known, columns, target, schema)

    def drawn(m: int, rng: np.random.Generator) -> pa.Table:
        found = _with_rare_levels(whole.take(pa.array(rng.integers(table.num_rows, size=m))), schema, len(whole), rng)
        if model is None and chances is None:
            return found
        if model is None and chances is not None:  # labels of a penalised fit: few rows separate their own labels
            place = found.schema.names.index(target)
            return found.set_column(place, target, pa.array(chances(encoder.x(found), rng)))
        assert model is not None
        x = encoder.x(found)
        return found.append_column(target, pa.array(model.responses(np.where(np.isfinite(x), x, 0.0), rng)))

    what = f"{table.num_rows} {'labelled' if labelled else 'unlabelled'} public rows"
    return _Population(encoder.features, columns, drawn, whole, schema, what)


def _fitted_chances(
    public: Any, columns: Sequence[str], target: str, schema: Schema | None
) -> Callable[[Matrix, np.random.Generator], Vector] | None:
    """Draws labels of two classes from a penalised fit to the public rows; None where their labels are not 0 and 1."""
    moments = public if isinstance(public, PublicMoments) else moments_of(public, columns, target, schema)[0]
    mean = moments.mean
    if moments.labels is None or not np.isin(moments.labels, (0, 1)).all() or mean is None:
        return None
    scale = np.maximum(moments.deviation, 1e-12)
    whitening = np.diag(np.append(1.0, 1 / scale))
    whitening[1:, 0] = -mean / scale
    space = WhitenedSpace(moments.names, whitening, math.inf, mean, intercept=True)
    family = family_of("binomial")
    coef = fit_public(moments, space, family).coef

    def draw(x: Matrix, rng: np.random.Generator) -> Vector:
        chance = family.mean(space.whiten(np.where(np.isfinite(x), x, mean)) @ coef)
        return np.asarray(rng.random(len(x)) < chance, dtype=np.float64)

    return draw


def _with_rare_levels(table: pa.Table, schema: Schema | None, rows: int, rng: np.random.Generator) -> pa.Table:
    """Some cells of categorical columns with random levels, as many as one more public row for each level would have.

    A level that no public row has may still occur among private rows, and its coefficient then has an error.
    """
    for name, column in {} if schema is None else schema.columns.items():
        if name not in table.schema.names or not isinstance(column, Categorical):
            continue
        levels = np.array(column.levels, dtype=object)
        hit = rng.random(table.num_rows) < len(levels) / (rows + len(levels))
        text = pc.if_else(
            pa.array(hit), pa.array(rng.choice(levels, table.num_rows), pa.large_string()),
            pc.cast(undictionaried(table[name]), pa.large_string()),
        )  # fmt: skip
        table = table.set_column(table.schema.names.index(name), name, text)
    return table


def _checked_response(response: Any) -> tuple[float, float]:
    if not (isinstance(response, tuple) and len(response) == 2 and math.isfinite(sum(response)) and response[1] > 0):
        raise InvalidInput(f"response= takes (mean, standard deviation) of the target, not {one_line(response)}")
    return float(response[0]), float(response[1])


def _known(assumed: _Assumed | None) -> _Assumed:
    if assumed is None:
        raise InvalidInput("without public labels give response=(mean, standard deviation) of the target, as assumed")
    return assumed


class _Assumed(NamedTuple):
    """A response of a family with this mean and standard deviation, of whose variance the features explain a share."""

    family: Family
    mean: float
    deviation: float
    explained: float

    def responses(self, x: Matrix, rng: np.random.Generator) -> Vector:
        """Responses to these rows, of shape (m,)."""
        family, mean, deviation = self.family, self.mean, self.deviation
        spread = np.maximum(x.std(axis=0), 1e-12)
        direction = ((x - x.mean(axis=0)) / spread) @ rng.choice([-1.0, 1.0], x.shape[1])
        direction /= max(float(direction.std()), 1e-12)
        name = family.distribution.name
        if name == "gaussian":
            own = math.sqrt(1 - self.explained) * rng.normal(size=len(x))
            return np.asarray(mean + deviation * (math.sqrt(self.explained) * direction + own))
        # a slope that explains this share of the variance of means and responses, to first order
        eta = family.link.predictor(mean)
        slope = math.sqrt(self.explained) * deviation / max(abs(float(family.slope(np.array([eta]))[0])), 1e-12)
        chance = family.mean(eta + min(slope, family.link.longest / 2) * direction)
        chance *= mean / float(chance.mean())
        if name == "binomial":
            return np.asarray(rng.random(len(x)) < np.clip(chance, 0.0, 1.0), dtype=np.float64)
        if name == "poisson":  # with the assumed variance, if it is larger than the mean
            over = max(((1 - self.explained) * deviation**2 - mean) / mean**2, 1e-6)
            return np.asarray(rng.poisson(chance * rng.gamma(1 / over, over, len(x))), dtype=np.float64)
        shape = mean**2 / max((1 - self.explained) * deviation**2, 1e-12)
        return np.asarray(rng.gamma(shape, chance / shape))


def _piloted(
    population: _Population, family: Family, target: str, trust: str, n: int, privacy: Event, seed: int
) -> tuple[Vector, Vector]:
    """Parts of the standard errors of one fit to artificial rows: due to sampling, and due to noise."""
    rows = min(n, _ROWS)
    table = population.rows(rows, np.random.default_rng(seed))
    name = family.distribution.name
    schema = population.schema
    common: dict[str, Any] = {"public": population.public, "schema": schema, "random_state": seed}
    scale = math.sqrt(rows / n)
    given = (table, target, list(population.columns))
    fit: Any
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if trust == "central":
            budget = GDP(gaussian_promise(privacy).mu * n / rows)
            kind = estimator_of(name)
            fit = DPLinearRegression(budget, **common) if name == "gaussian" else kind(budget, **common)
            if isinstance(fit, DPGLMRegressor):
                fit.set_params(family=name)
            fit.fit_table(*given, progress=False)
            noise = fit.bse_privacy
        elif trust == "local":
            y = to_numbers(table[target])
            fit = LocalGLM(privacy, family=name, response_bounds=(float(np.nanmin(y)), float(np.nanmax(y))), **common)
            fit.fit_table(*given, progress=False)
            noise = fit.bse_privacy * scale
        else:
            fit, noise = _vertical(population, table, target, privacy, n, seed)
    if fit.estimates_ is None:
        raise NotAvailable(
            f"a {trust} fit of {n:,} rows at {privacy} offers no standard errors: plan for more of either"
        )
    known = fit.estimates_.identified
    with np.errstate(invalid="ignore"):
        return np.where(known, fit.bse_sampling * scale, np.inf), np.where(known, noise, np.inf)


def _vertical(
    population: _Population, table: pa.Table, target: str, privacy: Event, n: int, seed: int
) -> tuple[VerticalRegression, Vector]:
    """Two parties with half of the design columns each, and bounds as wide as the columns."""
    x = Encoder.of(population.columns, None, population.schema).x(table)
    columns = dict(zip(population.names, np.ascontiguousarray(x.T), strict=True)) | {target: to_numbers(table[target])}
    whole, half = pa.table(columns), max(1, x.shape[1] // 2)
    names = whole.schema.names
    parties = {"one": whole.select(names[:half]), "other": whole.select(names[half:])}
    ends = {name: (float(np.nanmin(values)), float(np.nanmax(values))) for name, values in columns.items()}
    schema = Schema({name: Numeric(low, high) for name, (low, high) in ends.items() if low < high})
    fit = VerticalRegression(GDP(gaussian_promise(privacy).mu * n / len(x)), schema=schema, random_state=seed)
    fit.fit_table(parties, target)
    return fit, fit.bse_privacy
