"""The interface of a collector in OpenAPI 3.1."""

from __future__ import annotations

from typing import Any

from dpregress.collector.admission import REASONS
from dpregress.version import __version__

_STATUSES = {
    "403": "The token is unknown, or the study is not open.",
    "404": "Another study.",
    "408": "Too slow.",
    "409": "The token or the id was used before.",
    "413": "Too long.",
    "415": "Another content type.",
    "422": "Not a report of this study.",
    "429": "Too many requests.",
    "503": "Busy; try again later.",
}


def _reference(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _json(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _problem(description: str) -> dict[str, Any]:
    return {"description": description, "content": {"application/problem+json": {"schema": _reference("Problem")}}}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


_TEXT, _COUNT = {"type": "string"}, {"type": "integer", "minimum": 0}
_NUMBER = {"type": ["number", "null"]}
_SCHEMAS = {
    "Problem": _object(
        type=_TEXT, title=_TEXT, status={"type": "integer"}, detail=_TEXT, reason={"type": "string"}
    ),
    "Stored": _object(status={"enum": ["stored", "repeated"]}),
    "Results": _object(
        results={
            "type": "array",
            "items": _object(
                status={"type": "integer"}, reason={"enum": [*REASONS, None]}
            ),
        }
    ),
    "Status": _object(
        study=_TEXT, title=_TEXT, state={"enum": ["early", "open", "closed"]}, opens=_TEXT, closes=_TEXT,
        minimum=_COUNT, accepted=_COUNT, arrivals={"type": "array", "items": _object(hour=_TEXT, reports=_COUNT)},
        refused={"type": "object", "additionalProperties": _COUNT},
    ),
    "Result": _object(
        study=_TEXT, family=_TEXT, n=_COUNT, privacy=_TEXT, level=_NUMBER,
        coefficients={
            "type": "array",
            "items": _object(
                name=_TEXT, coef=_NUMBER, estimate=_NUMBER, standard_error=_NUMBER, lower=_NUMBER, upper=_NUMBER,
                jackknife_error=_NUMBER, poisoned=_NUMBER,
            ),
        },
        poisoned_share=_NUMBER,
    ),
}  # fmt: skip


def _sending(summary: str, least: int, most: int, answers: dict[str, Any]) -> dict[str, Any]:
    body = {"type": "string", "format": "binary", "minLength": least, "maxLength": most}
    refusals = {status: _problem(text) for status, text in _STATUSES.items()}
    return {
        "post": {
            "summary": summary,
            "requestBody": {"required": True, "content": {"application/octet-stream": {"schema": body}}},
            "responses": {**answers, **refusals},
        }
    }


def _reading(summary: str, answers: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"get": {"summary": summary, "responses": answers, **more}}


def interface(length: int, batch: int) -> dict[str, Any]:
    """The OpenAPI document for a study whose reports have this many bytes.

    Parameters
    ----------
    length : int
        Bytes of a report.
    batch : int
        Reports in a batch.
    """
    stored = {
        "201": _json("Stored.", _reference("Stored")),
        "200": _json("Stored before.", _reference("Stored")),
    }
    plain = {"200": {"description": "Text.", "content": {"text/plain": {"schema": _TEXT}}}}
    page = {"200": {"description": "A page.", "content": {"text/html": {"schema": _TEXT}}}}
    keyed: dict[str, Any] = {"security": [{"admin": []}]}
    anything = {"type": "object"}
    missing, busy = _problem("There is none."), _problem("Busy; try again later.")
    refused = {"401": _problem("No admin key."), "403": _problem("Too few reports, or shares alone."), "503": busy}
    paths = {
        "/api/reports": _sending("Send a report.", length, length, stored),
        "/api/reports/batch": _sending(
            "Send reports, one after the other.",
            length,
            batch * length,
            {"200": _json("In order.", _reference("Results"))},
        ),
        "/api/study": _reading("The study, byte for byte.", {"200": _json("The study.", anything)}),
        "/api/study/signature": _reading("Its signature.", {"200": _json("Signature.", anything), "404": missing}),
        "/api/status": _reading("Counts.", {"200": _json("Counts.", _reference("Status")), "503": busy}),
        "/api/result": _reading("The fit.", {"200": _json("The fit.", _reference("Result")), **refused}, **keyed),
        "/health": _reading("Liveness.", {"200": _json("Alive.", anything)}),
        "/ready": _reading("Readiness.", {"200": _json("Ready.", anything), "503": busy}),
        "/metrics": _reading("Prometheus metrics.", plain),
        "/openapi.json": _reading("This document.", {"200": _json("This document.", anything)}),
        "/study": _reading("The page for participants.", page),
        "/dashboard": _reading("The page for the research group.", page),
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "dpregress collector", "version": __version__},
        "paths": paths,
        "components": {"schemas": _SCHEMAS, "securitySchemes": {"admin": {"type": "http", "scheme": "bearer"}}},
    }
