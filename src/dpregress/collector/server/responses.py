"""Responses: JSON, problem details, and pages under a strict content security policy."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from importlib.resources import files
from typing import Any

from starlette.responses import Response

from dpregress.collector.admission import REASONS
from dpregress.collector.store import Outcome

_JSON, _PROBLEM = "application/json", "application/problem+json"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
#: Nothing from elsewhere, no inline script or style, and nobody may frame the page.
_POLICY = (
    "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src {}; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
#: The page for participants, which sends.
_SENDING = "study.html"
_PAGE_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-cache",
}
_API_HEADERS = {"x-content-type-options": "nosniff", "cache-control": "no-store"}


def answer(content: Any, status: int = 200) -> Response:
    """A JSON answer."""
    return Response(json.dumps(content, allow_nan=False), status, _API_HEADERS, _JSON)


def document(content: bytes, digest: str) -> Response:
    """A JSON document, byte for byte."""
    return Response(content, 200, {**_API_HEADERS, "cache-control": "no-cache", "etag": f'"{digest}"'}, _JSON)


_STORED = Response(b'{"status": "stored"}', 201, _API_HEADERS, _JSON)
_REPEATED = Response(b'{"status": "repeated"}', 200, _API_HEADERS, _JSON)


def outcome_response(outcome: Outcome) -> Response:
    """What is told to the sender of one report."""
    if outcome.reason is None:
        return _STORED if outcome.status == 201 else _REPEATED
    return problem(outcome.status, REASONS[outcome.reason], outcome.reason)


def problem(
    status: int, detail: str, reason: str | None = None, *, wait: float = 0.0, headers: Mapping[str, str] | None = None
) -> Response:
    """A refusal as problem details (RFC 9457)."""
    title = HTTPStatus(status).phrase
    content = {"type": "about:blank", "title": title, "status": status, "detail": detail, "reason": reason or "other"}
    more = {"retry-after": str(max(1, math.ceil(wait)))} if wait else {}
    return Response(json.dumps(content), status, {**_API_HEADERS, **more, **(headers or {})}, _PROBLEM)


def load_pages(collectors: Sequence[str] = ()) -> dict[str, Response]:
    """The pages and what they load, by file name.

    Parameters
    ----------
    collectors : sequence of str
        The origins of two collectors, to which alone the page for participants connects; none where devices add noise.
    """
    folder = files("dpregress.collector") / "pages"
    found = {}
    for item in folder.iterdir():
        kind = _TYPES.get("." + item.name.rpartition(".")[2])
        if kind is not None:
            targets = " ".join(collectors) if collectors and item.name == _SENDING else "'self'"
            policy = {"content-security-policy": _POLICY.format(targets)}
            found[item.name] = Response(item.read_bytes(), 200, {**_PAGE_HEADERS, **policy}, kind)
    return found
