"""A fitted model as a summary."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from dpregress.accounting import PrivacyStatement
from dpregress.accounting.wording import describe
from dpregress.coordinates import Domain, Matrix
from dpregress.display import some_and_more
from dpregress.inference import interval_ends, intervals, p_values, ratio_of, standard_errors, t_ratios
from dpregress.releases import ClassCoefficients, Coefficients, Estimates
from dpregress.releases.model_files import ResponseModel
from dpregress.reports.summary import Summary, SummaryTable, unidentified_note

#: What the numbers of a table are, by whether there are estimates for inference.
_UNSHRUNK = (
    "coef is the unshrunk estimate; intervals and tests are based on it. std err^2 = sampling s.e.^2 +",
    "privacy s.e.^2; the latter is due to noise, and to what bounding the rows may have moved.",
    "Predictions use the shrunk estimate, coef_.",
)
_SHRUNK = (
    "These are the shrunk coefficients that predict (coef_). Their errors are no basis for intervals",
    "or tests, which this fit does not offer.",
)
#: Ranges that a note names.
_NAMED_RANGES = 6
#: What times are called in the fit that were given as an array without a name: the column takes that of exposures.
_UNNAMED = "exposure"
#: Ends of pieces that the facts name.
_NAMED_CUTS = 8
#: With more degrees of freedom, t is as good as normal.
_NORMAL = 1e4


class SummaryNotes(NamedTuple):
    """What a summary says beside the numbers, above and below the line of the guarantee."""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


_NO_NOTES = SummaryNotes()


def summary_of(
    model: str,
    coefficients: Coefficients | ClassCoefficients,
    privacy: PrivacyStatement,
    *,
    response: ResponseModel | None = None,
    estimates: Estimates | None = None,
    level: float = 0.95,
    notes: SummaryNotes = _NO_NOTES,
) -> Summary:
    """Estimates with intervals and tests, or the coefficients alone where there are none, and the guarantee below.

    Parameters
    ----------
    model : str
        The name of the estimator.
    coefficients : Coefficients or ClassCoefficients
    privacy : PrivacyStatement
    response : ResponseModel, optional
    estimates : Estimates, optional
    level : float
        Of the intervals.
    notes : SummaryNotes
    """
    family = () if response is None else (("Family", f"{response.family}, {response.link} link"), *_time(response))
    facts = [
        ("Response", coefficients.target),
        ("Model", model),
        *family,
        ("Rows", f"{coefficients.n:,} private records"),
        ("Budget", f"{describe(privacy.budget)}{' (seeded: no protection)' if privacy.seeded else ''}"),
        ("Privacy", _promise(privacy)),
    ]
    if estimates is None:
        tables, said = _shrunk_tables(coefficients), [*_SHRUNK]
    else:
        law = (("Reference", _reference(estimates)),) if estimates.identified.any() else ()
        facts += [("Covariance", estimates.cov_type), *law]
        tables, said = estimate_tables(estimates, coefficients, level), [*_UNSHRUNK, *_moved(estimates)]
    guarantee = f"n = {coefficients.n}; {privacy.describe()}."
    said = [*unidentified_note(tables), *said, *notes.before, guarantee, *notes.after]
    return Summary(f"{model} of {coefficients.target}", tuple(facts), tables, tuple(said))


def _time(response: ResponseModel) -> tuple[tuple[str, str], ...]:
    """The follow-up of a survival model, with the name of the column of times if it has one."""
    if not response.cuts:
        return ()
    name = "" if response.exposure in (None, _UNNAMED) else f"{response.exposure}, "
    ends = some_and_more([f"{cut:.12g}" for cut in response.cuts], _NAMED_CUTS)
    return (("Time", f"{name}followed up to {response.cuts[-1]:.12g}; pieces end at {ends}"),)


def _promise(privacy: PrivacyStatement) -> str:
    """The guarantee as one number, and of which kind of differential privacy it is."""
    kind = "Gaussian DP" if math.isfinite(privacy.promise.mu) else "zero-concentrated DP"
    return f"{privacy.promise_in_mu} ({kind}){' if the noise were not seeded' if privacy.seeded else ''}"


def _reference(estimates: Estimates) -> str:
    """The law by which intervals and tests of identified coefficients are made."""
    least = float(estimates.degrees_of_freedom[estimates.identified].min())
    if math.isinf(least):
        return "normal"
    return f"t (df > {_NORMAL:,.0f}: normal)" if least > _NORMAL else f"t (df >= {least:.4g}, by coefficient)"


def _moved(estimates: Estimates) -> tuple[str, ...]:
    """A note on coefficients that row weights and clips may move further than their standard errors tell."""
    error = standard_errors(estimates)
    far = estimates.identified & (estimates.shift > np.where(np.isfinite(error), error, np.inf))
    if not far.any():
        return ()
    names = [name for name, is_far in zip(estimates.names, far, strict=True) if is_far]
    shown = "all coefficients" if far.all() else some_and_more(names)
    most = float(np.max(estimates.shift[far] / error[far]))
    return (
        "Intervals assume that the model is right. Because outlying rows and large residuals are downweighted,",
        "a misfit of a tenth of the residual standard deviation could bias these coefficients by up to",
        f"{most:.1f} standard errors, which intervals do not include: {shown}.",
    )


def _shrunk_tables(coefficients: Coefficients | ClassCoefficients) -> tuple[SummaryTable, ...]:
    tables = []
    for name, one in coefficients.by_class():
        columns = ("coefficient", "std. error", "privacy s.e.")
        known = one.identified
        errors = (np.where(known, each, np.nan).tolist() for each in (one.standard_error, one.privacy_error))
        names = ("(intercept)", *one.features)
        rows = ((float(one.intercept), None, None), *zip(one.coef.tolist(), *errors, strict=True))
        tables.append(SummaryTable(_title(one.target, name), columns, names, rows, (True, *known.tolist())))
    return tuple(tables)


def estimate_tables(
    estimates: Estimates, coefficients: Coefficients | ClassCoefficients, level: float
) -> tuple[SummaryTable, ...]:
    """Tables as statisticians know them, one for each class."""
    ratio = ratio_of(estimates.df)
    columns = ("coef", "std err", "privacy s.e.", ratio, f"P>|{ratio}|", *interval_ends(level))
    lower, upper = intervals(estimates, level).T
    privacy = standard_errors(estimates, estimates.privacy)
    numbers = (estimates.estimate, standard_errors(estimates), privacy, t_ratios(estimates), p_values(estimates))
    rows = list(zip(*(column.tolist() for column in (*numbers, lower, upper)), strict=True))
    tables = []
    classes = coefficients.by_class()
    each = len(rows) // len(classes)
    for position, (name, _) in enumerate(classes):
        own = slice(position * each, (position + 1) * each)
        names = tuple(text.removeprefix(f"{name}: ") for text in estimates.names[own])
        known = tuple(estimates.identified[own].tolist())
        tables.append(SummaryTable(_title(coefficients.target, name), columns, names, tuple(rows[own]), known))
    return tuple(tables)


def ratio_table_of(names: tuple[str, ...], ratios: Matrix, name: str, level: float) -> SummaryTable:
    """Ratios of the slopes with their ends, of shape (d, 3), under the name that readers know."""
    rows = tuple(map(tuple, ratios.tolist()))
    known = tuple(not any(map(math.isnan, row)) for row in rows)
    return SummaryTable("", (name or "ratio", *interval_ends(level)), names, rows, known)


def _title(target: str, name: str) -> str:
    return f"{target} = {name}" if name else ""


def ranges_of(coefficients: Coefficients | ClassCoefficients) -> list[tuple[str, float, float]]:
    """The released ranges of features; none where none were asked."""
    if isinstance(coefficients, ClassCoefficients) or coefficients.ends is None:
        return []
    return list(zip(coefficients.features, *coefficients.ends.tolist(), strict=True))


def narrowed_ranges(domain: Domain) -> list[tuple[str, float, float]]:
    """The ranges of numbers whose bins lie in a part of their bounds."""
    narrow = [each for each in domain.attributes if each.is_narrowed]
    return [(a.name, max(a.edges[0], a.limits[0]), min(a.edges[1], a.limits[1])) for a in narrow]


def ranges_note(ranges: Iterable[tuple[str, float, float]]) -> list[str]:
    """The note that values beyond released ranges of columns count as their ends; none where there are no ranges."""
    told = [f"{name} {lower:.4g} to {upper:.4g}" for name, lower, upper in ranges if math.isfinite(lower)]
    more = f", .. ({len(told)} in all)" if len(told) > _NAMED_RANGES else ""
    named = ", ".join(told[:_NAMED_RANGES])
    said = "Coefficients are those of numbers within these ranges, beyond which they count as the ends"
    return [f"{said}: {named}{more}."] if told else []
