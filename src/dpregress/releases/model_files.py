"""Released values as versioned JSON. Files decode into a fixed table of types; nothing is executed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpregress.accounting import PrivacyStatement, decode
from dpregress.coordinates.domain import Domain
from dpregress.coordinates.ranges import decode_ends, encode_ends
from dpregress.coordinates.svec import Matrix, Vector
from dpregress.coordinates.whitened import WhitenedSpace
from dpregress.display import shown
from dpregress.errors import InvalidInput, reason
from dpregress.json_files import DAMAGED, MALFORMED, NotJSON, finite_or_null, parsed
from dpregress.models.hazards import SURVIVAL, baseline, checked_cuts
from dpregress.releases.estimates import Estimates
from dpregress.releases.noise import Entrywise, Isotropic, NoiseLaw
from dpregress.releases.release import ANYWHERE, ClassCoefficients, Coefficients, Moments

T = TypeVar("T")
Label = bool | int | float | str
_FORMAT = "dpregress.model/1"
_PRIVACY_FORMAT = "dpregress.privacy/1"
#: The entries of a file that a model of several classes holds once for each class.
_NUMBERS = ("intercept", "coef", "standard_error", "privacy_error")


def is_label(value: object) -> bool:
    """Whether a column of a table can hold this class."""
    if isinstance(value, int) and not isinstance(value, bool):
        return -(2**63) <= value < 2**63
    return isinstance(value, bool | float | str)


@dataclass(frozen=True)
class ResponseModel:
    """How a linear predictor becomes a prediction: the family, the link, and the classes of a categorical response.

    If ``exposure`` names a column, its logarithm is added to the predictor. A survival model has the ends of the
    pieces of the follow-up, ``cuts``, and their log hazards ``relative`` to the mean; its ``exposure`` is the time.
    ``labels`` are the classes as the response holds them, if these are not all text.
    """

    family: str = "gaussian"
    link: str = "identity"
    classes: tuple[str, ...] = ()
    exposure: str | None = None
    cuts: tuple[float, ...] = ()
    relative: tuple[float, ...] = ()
    labels: tuple[Label, ...] = ()

    def likeliest(self, chances: Matrix) -> NDArray[Any]:
        """The likeliest class, of shape (m,), by probabilities of shape (m, K), or (m,) of the second of two."""
        mixed = len({isinstance(label, str) for label in self.labels}) > 1
        names: NDArray[Any] = np.array(self.labels or self.classes, dtype=object if mixed else None)
        return np.asarray(names[chances.argmax(axis=1) if chances.ndim == 2 else (chances > 0.5).astype(int)])

    def probability(self, predictor: Vector, time: Vector) -> Vector:
        """Of a survival model the probability of the event until a time, of shape (m,), as cumulative_hazard."""
        return np.asarray(-np.expm1(-self.cumulative_hazard(predictor, time)))

    def cumulative_hazard(self, predictor: NDArray[Any], time: Vector) -> NDArray[Any]:
        """Of a survival model the hazard cumulated until a time; NaN below 0 and beyond the last cut."""
        return np.asarray(baseline(time, self.cuts, self.relative) * np.exp(np.clip(predictor, -700, 700)))


@dataclass(frozen=True)
class WrittenFormula:
    """The formula of a model, and the levels of its categorical columns; the first level is the reference.

    ``missing`` names the level assigned to missing cells, where that is not the reference.
    """

    text: str
    levels: Mapping[str, tuple[str, ...]]
    missing: Mapping[str, str]


@dataclass(frozen=True)
class WrittenSummary:
    """What the summary of a model says beside its coefficients and its guarantee.

    Parameters
    ----------
    model : str
        The name of the estimator.
    before, after : tuple of str
        Notes above and below the line of the guarantee.
    party : PrivacyStatement, optional
        The guarantee that the summary shows, if it is that of one of several parties.
    """

    model: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    party: PrivacyStatement | None = None


_LINEAR = ResponseModel()


def model_text(
    coefficients: Coefficients | ClassCoefficients,
    privacy: PrivacyStatement,
    moments: Moments | None,
    *,
    software: str,
    response: ResponseModel = _LINEAR,
    formula: WrittenFormula | None = None,
    schema: str | None = None,
    estimates: Estimates | None = None,
    diagnosis: Mapping[str, Any] | None = None,
    domain: Domain | None = None,
    summary: WrittenSummary | None = None,
) -> str:
    """A fitted model as JSON text: coefficients, guarantee, and the noisy moments from which they were computed.

    Parameters
    ----------
    coefficients : Coefficients or ClassCoefficients
        For several classes the file holds lists, in the order of the classes.
    privacy : PrivacyStatement
    moments : Moments or None
    software : str
        Name and version of the program that wrote it.
    response : ResponseModel
    formula : WrittenFormula, optional
    schema : str, optional
        The declaration, in TOML, of the columns from which predictions are made.
    estimates : Estimates, optional
        For inference. Files of earlier versions have none.
    diagnosis : mapping, optional
        A paid diagnosis as plain values.
    domain : Domain, optional
        Of a model of coded columns: rows to predict for are coded by it.
    summary : WrittenSummary, optional
        Files of earlier versions have none.
    """
    record = {
        "format": _FORMAT,
        "software": software,
        "target": coefficients.target,
        "n": coefficients.n,
        "features": list(coefficients.features),
        **_numbers(coefficients),
        "fill": coefficients.fill.tolist(),
        **_of_ends(coefficients),
        "response": _of_response(response),
        "formula": None if formula is None else dict(vars(formula)),
        "schema": schema,
        "domain": None if domain is None else domain.encode(),
        "estimates": None if estimates is None else estimates.encode(),
        **({} if diagnosis is None else {"diagnosis": dict(diagnosis)}),
        **({} if summary is None else {"summary": _of_summary(summary)}),
        "privacy": privacy.encode(),
        "moments": None if moments is None or _sigma(moments.noise) is None else encode_moments(moments),
    }
    return json.dumps(record, indent=1, allow_nan=False) + "\n"


def _of_summary(summary: WrittenSummary) -> dict[str, Any]:
    party = {} if summary.party is None else {"party": summary.party.encode()}
    return {"model": summary.model, "before": list(summary.before), "after": list(summary.after), **party}


def _summary(found: Mapping[str, Any]) -> WrittenSummary:
    before, after = tuple(found["before"]), tuple(found["after"])
    if not all(isinstance(text, str) for text in (found["model"], *before, *after)):
        raise InvalidInput("its summary holds something else in place of a text")
    party = None if found.get("party") is None else PrivacyStatement.decode(found["party"])
    return WrittenSummary(found["model"], before, after, party)


def _of_ends(coefficients: Coefficients | ClassCoefficients) -> dict[str, Any]:
    ends = coefficients.ends if isinstance(coefficients, Coefficients) else None
    return {} if ends is None else {"ends": encode_ends(ends)}


def load_model(path: str | Path) -> Coefficients | ClassCoefficients:
    """Read the coefficients of a model file; with more than two classes, those of each class.

    Raises
    ------
    InvalidInput
        If the file is not a model file, or has another version.
    """
    return _load(path, _predictors)


def load_response(path: str | Path) -> ResponseModel:
    """Read from a model file how predictions are made."""
    return _load(path, _response)


def _of_response(response: ResponseModel) -> dict[str, Any]:
    """Plain values; pieces only of a survival model."""
    found = dict(vars(response))
    names = ["family", "link", "classes", "exposure", *(["cuts", "relative"] if response.cuts else [])]
    return {name: found[name] for name in [*names, *(["labels"] if response.labels else [])]}


def _response(record: Mapping[str, Any]) -> ResponseModel:
    found, several = record["response"], isinstance(record["intercept"], list)
    classes = tuple(str(name) for name in found["classes"])
    if len(set(classes)) != len(classes) or not (several or len(classes) in (0, 2)):
        raise InvalidInput("its classes are not those of its coefficients")
    labels = found.get("labels", [])
    if not isinstance(labels, list) or len(labels) not in (0, len(classes)) or not all(map(is_label, labels)):
        raise InvalidInput("its labels are not those of its classes")
    exposure = None if found.get("exposure") is None else str(found["exposure"])
    family = str(found["family"])
    cuts, relative = tuple[float, ...](), tuple[float, ...]()
    if family == SURVIVAL:
        cuts, relative = checked_cuts(found["cuts"]), tuple(float(value) for value in found["relative"])
        if len(cuts) != len(relative) or not np.isfinite(relative).all():
            raise InvalidInput("its hazards are not those of its pieces")
    return ResponseModel(family, str(found["link"]), classes, exposure, cuts, relative, tuple(labels))


def load_estimates(path: str | Path) -> Estimates | None:
    """Read the estimates for inference of a model file; None where it holds none."""
    return _load_part(path, "estimates", Estimates.decode)


def load_diagnosis(path: str | Path, decode: Callable[[Mapping[str, Any]], T]) -> T | None:
    """Read the diagnosis of a model file by a function that decodes it; None where it holds none."""
    return _load_part(path, "diagnosis", decode)


def load_domain(path: str | Path) -> Domain | None:
    """Read the domain of a model of coded columns; None for other models."""
    return _load_part(path, "domain", Domain.decode)


def load_summary(path: str | Path) -> WrittenSummary | None:
    """Read what the summary of a model says beside its numbers; None for files of earlier versions."""
    return _load_part(path, "summary", _summary)


def load_privacy(path: str | Path) -> PrivacyStatement:
    """Read the guarantee of the fit from a model file."""
    return _load(path, lambda record: PrivacyStatement.decode(record["privacy"]))


def load_formula(path: str | Path) -> WrittenFormula | None:
    """Read the formula of a model file; None for a model without one."""

    def read(written: Mapping[str, Any]) -> WrittenFormula:
        levels = {str(name): tuple(str(level) for level in levels) for name, levels in written["levels"].items()}
        missing = {str(name): str(level) for name, level in written["missing"].items()}
        return WrittenFormula(str(written["text"]), levels, missing)

    return _load_part(path, "formula", read)


def load_schema_text(path: str | Path) -> str | None:
    """Read the schema of the columns from a model file, in TOML; None where it holds none."""

    def read(record: Mapping[str, Any]) -> str | None:
        text = record.get("schema")
        if text is not None and not isinstance(text, str):
            raise InvalidInput("its schema is not text")
        return text

    return _load(path, read)


def privacy_text(privacy: PrivacyStatement, *, software: str) -> str:
    """A privacy statement as JSON text, with its total in mu and in epsilon at the budget's delta, or 1e-6.

    If the noise was seeded, the total is null and the nominal total is given separately.
    """
    delta = privacy.budget.parameters().get("delta", 1e-6)
    promise = privacy.promise
    total = {"mu": promise.mu, "epsilon": finite_or_null([promise.epsilon(delta)])[0], "delta": delta}
    if privacy.seeded:
        total = {"mu": None, "epsilon": None, "delta": delta, "nominal": total}
    record = {"format": _PRIVACY_FORMAT, "software": software, "total": total, **privacy.encode()}
    return json.dumps(record, indent=1, allow_nan=False) + "\n"


def load_moments(path: str | Path) -> Moments:
    """Read the noisy moments of a model file: other penalties, subsets or tests based on them cost no budget.

    Raises
    ------
    InvalidInput
        If the file is not a model file, or its recipe released no joint moments.
    """
    return _load(path, _moments_of_model)


def _load_part(path: str | Path, name: str, decode: Callable[[Any], T]) -> T | None:
    """Read a part of a model file that not all of them hold."""
    return _load(path, lambda record: None if record.get(name) is None else decode(record[name]))


def _load(path: str | Path, read: Callable[[Mapping[str, Any]], T]) -> T:
    """Read a model file, or the one in a folder that a fit wrote."""
    path = Path(path) / "model.json" if Path(path).is_dir() else Path(path)
    try:
        record = parsed(path.read_text(encoding="utf-8"))
        if not isinstance(record, dict) or "format" not in record:
            raise InvalidInput("not a model file: give the model.json of a fit")
        if record["format"] != _FORMAT:
            raise InvalidInput(f"it is of format {record['format']!r}, not {_FORMAT!r}")
        return read(record)
    except NotJSON as error:
        mend = "copy it again from the folder of the fit"
        raise InvalidInput(f"{shown(path)} is cut short or damaged: {mend} ({error})") from error
    except InvalidInput as error:
        raise InvalidInput(f"{shown(path)}: {error}") from error
    except OSError as error:
        raise InvalidInput(f"{shown(path)} cannot be read: {reason(error)}; give the model.json of a fit") from error
    except KeyError as error:
        raise InvalidInput(f"{shown(path)} is not a model file: it lacks the entry {reason(error)}") from error
    except MALFORMED as error:
        raise InvalidInput(f"{shown(path)} is not a model file: {reason(error)}") from error


def _numbers(coefficients: Coefficients | ClassCoefficients) -> dict[str, Any]:
    """The numbers of one predictor, or lists of those of each class."""
    if isinstance(coefficients, ClassCoefficients):
        each = [_numbers(one) for one in coefficients.each]
        return {key: [one[key] for one in each] for key in _NUMBERS}
    return {
        "intercept": coefficients.intercept,
        "coef": coefficients.coef.tolist(),
        "standard_error": finite_or_null(coefficients.standard_error),
        "privacy_error": finite_or_null(coefficients.privacy_error),
        "reach": finite_or_null(coefficients.reach),
        **({} if coefficients.limits is None else {"limits": finite_or_null(coefficients.limits)}),
    }


def _predictors(record: Mapping[str, Any]) -> Coefficients | ClassCoefficients:
    if not isinstance(record["intercept"], list):
        return _coefficients(record)
    classes = tuple(str(name) for name in record["response"]["classes"])
    each = [dict(zip(_NUMBERS, one, strict=True)) for one in zip(*(record[key] for key in _NUMBERS), strict=True)]
    return ClassCoefficients(classes, tuple(_coefficients({**record, **numbers}) for numbers in each))


def _ends(record: Mapping[str, Any], name: str) -> tuple[float, float] | None:
    """What predictors are kept between; files of earlier versions, and of several classes, have no such bounds."""
    ends = record.get(name)
    if ends is None:
        return None
    numbers = isinstance(ends, list) and all(end is None or type(end) in (int, float) for end in ends)
    if not numbers or len(ends) != 2:
        raise InvalidInput(f"the {name} of its predictors are not two numbers")
    lower, upper = (-math.inf if ends[0] is None else float(ends[0])), (math.inf if ends[1] is None else float(ends[1]))
    if not lower <= upper:
        raise InvalidInput(f"its predictors cannot lie between {lower} and {upper}")
    return lower, upper


def _coefficients(record: Mapping[str, Any]) -> Coefficients:
    features = tuple(str(name) for name in record["features"])
    vectors = {
        key: np.array([np.nan if value is None else value for value in record[key]], dtype=np.float64)
        for key in ("coef", "standard_error", "privacy_error", "fill")
    }
    if any(vector.shape != (len(features),) for vector in vectors.values()):
        raise InvalidInput(f"its {len(features)} features do not match the number of its coefficients")
    if not np.isfinite([float(record["intercept"]), *vectors["coef"], *vectors["fill"]]).all():
        raise InvalidInput("its coefficients hold a number that is not finite")
    return Coefficients(
        features=features,
        intercept=float(record["intercept"]),
        target=str(record["target"]),
        n=_count(record["n"]),
        reach=_ends(record, "reach") or ANYWHERE,
        limits=_ends(record, "limits"),
        ends=None if record.get("ends") is None else decode_ends(record["ends"], len(features)),
        **vectors,
    )


def _count(n: Any) -> int:
    if type(n) is not int or not 0 <= n < 2**63:
        raise InvalidInput(f"its number of rows is invalid: {DAMAGED}")
    return n


def _moments_of_model(record: Mapping[str, Any]) -> Moments:
    if record["moments"] is None:
        raise InvalidInput("this recipe released no joint moments")
    return decode_moments(record["moments"])


def decode_moments(moments: Mapping[str, Any]) -> Moments:
    """Read back what :func:`encode_moments` wrote."""
    space = WhitenedSpace.decode(moments["frame"])
    total = np.array(moments["total"], dtype=np.float64)
    order = space.order + (space.response is not None)
    if total.shape != (order, order):
        raise InvalidInput(f"moments of {order} columns need a matrix of shape {(order, order)}")
    events = tuple(decode(event) for event in moments["events"])
    sigma = moments["sigma"]
    noise = (
        Entrywise.of_scales(np.array(sigma, dtype=np.float64)) if isinstance(sigma, list) else Isotropic(float(sigma))
    )
    return Moments(total, int(moments["n"]), noise, events, space)


def encode_moments(moments: Moments) -> dict[str, Any]:
    """Released moments as plain values."""
    return {
        "frame": moments.space.encode(),
        "n": moments.n,
        "total": moments.total.tolist(),
        "events": [event.encode() for event in moments.events],
        "sigma": _sigma(moments.noise),
    }


def _sigma(noise: NoiseLaw) -> float | list[Any] | None:
    """One scale for all entries, or one for each."""
    if isinstance(noise, Entrywise):
        return [[float(value) for value in row] for row in noise.sigma]
    return noise.sigma if isinstance(noise, Isotropic) else None
