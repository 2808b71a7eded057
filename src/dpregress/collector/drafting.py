"""From a description that people write to a study, and what the study can be expected to find."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpregress.accounting import ApproxDP
from dpregress.collector.shares.holder import ShareHolder
from dpregress.collector.study import Study
from dpregress.collector.terms import Question, Terms, time_in
from dpregress.coordinates import Matrix, svec
from dpregress.display import shown
from dpregress.errors import InvalidInput, reason
from dpregress.estimators import LocalGLM
from dpregress.inputs.public import moments_of
from dpregress.parties.documents import LARGEST_TERMS, known_in, number_in, read_bytes, text_in, whole_in
from dpregress.public import PublicMoments
from dpregress.public.columns import read_column
from dpregress.queries import ClippedScore, CrossMoment
from dpregress.solvers.local.message_plan import equation_weights, normal_rows, weighted_gram

_TERMS = (
    "title", "version", "epsilon", "delta", "users", "opens", "closes", "enrolment", "minimum", "family", "consent",
    "response", "questions", "recipe",
)  # fmt: skip
_OPTIONAL = ("version", "enrolment", "recipe")
_QUESTION = ("lower", "upper", "unit", "levels", "text", "labels")
#: The language of texts that are given without one.
_DEFAULT_LANGUAGE = "en"


def study_from_toml(path: str | Path, public: Any = None, holders: Sequence[ShareHolder] = ()) -> Study:
    """The study that a TOML file describes, with the message that is predicted to lose least.

    Parameters
    ----------
    path : path-like
    public : table, file or PublicMoments, optional
        Public rows of the features; responses among them are not used.
    holders : sequence of ShareHolder
        Two collectors that hold shares and add the noise; default: devices add it.

    Raises
    ------
    InvalidInput
        For a file that is not TOML, lacks a term or contradicts itself, and for a study that tells nothing.
    """
    where = shown(path)
    try:
        given = tomllib.loads(read_bytes(path, LARGEST_TERMS).decode("utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise InvalidInput(f"cannot read {where} as a study: {reason(error)}") from error
    known_in(given, _TERMS, where)
    absent = [name for name in _TERMS if name not in given and name not in _OPTIONAL]
    if absent:
        raise InvalidInput(f"{where} lacks {absent[0]}: a study states {', '.join(_TERMS)}")
    terms = _terms(given, public)
    users, title = whole_in(given["users"], "users"), text_in(given["title"], "title")
    model = study_model(terms).set_params(recipe=given.get("recipe", "auto"))
    plan = model.plan(terms.features, users, target=terms.response.name, collectors=len(holders))
    return Study.of(plan, title, terms, holders)


def _terms(given: Mapping[str, Any], public: Any) -> Terms:
    consent = _translated(given["consent"], "consent")
    asked, last = given["questions"], text_in(given["response"], "response")
    if not isinstance(asked, dict) or last not in asked:
        raise InvalidInput(f"response = {last!r} is none of the questions: write [questions.{last}]")
    questions = [_question(name, asked[name]) for name in (*(name for name in asked if name != last), last)]
    terms = Terms(
        whole_in(given.get("version", 1), "version"),
        ApproxDP(number_in(given["epsilon"], "epsilon"), number_in(given["delta"], "delta")),
        time_in(given["opens"], "opens"),
        time_in(given["closes"], "closes"),
        given.get("enrolment", "token"),
        whole_in(given["minimum"], "minimum"),
        given["family"],
        consent,
        tuple(questions),
        None,
    )
    if public is None:
        return terms
    columns = tuple(question.name for question in terms.questions[:-1])
    return Terms(**{**vars(terms), "public": moments_of(public, columns, None, terms.schema)[0]})


def _question(name: str, given: Any) -> Question:
    known_in(given, _QUESTION, f"question {name!r}")
    declared = {key: value for key, value in given.items() if key not in ("text", "labels")}
    column, text = read_column(name, declared), _translated(given.get("text", name), f"text of {name!r}")
    levels = list(declared.get("levels", []))
    labels = given.get("labels", {key: [str(level) for level in levels] for key in text} if levels else {})
    if isinstance(labels, list):
        labels = {_DEFAULT_LANGUAGE: labels}
    if not isinstance(labels, dict) or not all(isinstance(each, list) for each in labels.values()):
        raise InvalidInput(f"labels of {name!r} are a list of texts, or one list for each language")
    return Question(name, column, text, {language: tuple(map(str, each)) for language, each in labels.items()})


def _translated(value: Any, what: str) -> dict[str, str]:
    """A text in one language or several."""
    found = {_DEFAULT_LANGUAGE: value} if isinstance(value, str) else value
    if not isinstance(found, dict) or not all(isinstance(text, str) for text in found.values()):
        raise InvalidInput(f"{what} is a text, or a table of one text for each language")
    return found


def study_model(terms: Terms, public: Any = None) -> LocalGLM:
    """The model that a study plans and fits.

    Parameters
    ----------
    terms : Terms
    public : table, file or PublicMoments, optional
        The public rows from which the study was planned; default: their moments, which give no confidence intervals.
    """
    moments = terms.public
    if public is not None:
        columns = tuple(question.name for question in terms.questions[:-1])
        moments = moments_of(public, columns, None, terms.schema)[0]
        if terms.public is None or not same_moments(moments, terms.public):
            raise InvalidInput("these are not the public rows of the study: give those from which it was planned")
    return LocalGLM(
        terms.budget,
        family=terms.family,
        public=moments,
        schema=terms.schema,
        response_bounds=terms.response.ends,
    )


def same_moments(one: PublicMoments, other: PublicMoments) -> bool:
    """Whether two moments are of the same rows, up to rounding."""
    return (one.names, one.n) == (other.names, other.n) and bool(np.allclose(one.second, other.second, rtol=1e-9))


def expected_errors(study: Study, users: Sequence[int], public: Any = None) -> Matrix:
    """Standard errors of the coefficients at several numbers of users, of shape (len(users), d).

    They are those of a study in which nothing explains the response and its mean is in the middle of its bounds. NaN
    where the fit would state none.

    Parameters
    ----------
    study : Study
        With terms.
    users : sequence of int
    public : table, file or PublicMoments, optional
    """
    assert study.terms is not None
    rows = []
    for n in users:
        model = study_model(study.terms, public)
        model.fit_release(study.release(_unexplained(study, n, model.public), n), study.message_plan)
        rows.append(stated_errors(model))
    return np.array(rows)


def _unexplained(study: Study, n: int, public: PublicMoments | None) -> NDArray[np.int64]:
    """The expected sum of n answers if nothing explains the response, which takes the ends of its bounds."""
    space, query = study.space, study.query
    if isinstance(query, ClippedScore) or public is None:
        return np.zeros(query.size, dtype=np.int64)
    rows = rows_standing(study, public)
    weights = equation_weights(space, rows)
    gram = weighted_gram(rows, weights)
    assert space.response is not None
    if isinstance(query, CrossMoment):
        value = query.parts.unexplained(weights @ rows / len(rows), gram)
    else:
        joint = np.diag(np.append(np.zeros(space.order), (space.response.cross * space.response.bound) ** 2))
        joint[:-1, :-1] = gram
        value = svec.svec(joint)
    return np.rint(n * value / study.step).astype(np.int64)


def rows_standing(study: Study, public: PublicMoments) -> Matrix:
    """Whitened public rows that stand for the users; where only moments are public, normal rows with these moments."""
    if public.rows is not None:
        return study.space.whiten(public.rows)
    second = public.augmented(study.space.intercept)
    return normal_rows(study.space, study.space.whitening @ second @ study.space.whitening.T)


def stated_errors(model: LocalGLM) -> Matrix:
    """Standard errors of the unshrunk estimates, else of the coefficients, of shape (d,)."""
    if model.estimates_ is not None:
        return np.asarray(model.bse[-len(model.coef_) :])
    return np.asarray(model.coefficients_.standard_error)
