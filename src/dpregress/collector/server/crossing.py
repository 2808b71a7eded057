"""Shares from a page of the other collector: the one origin that may send them across (Fetch standard, CORS)."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from dpregress.collector.addresses import origin_of
from dpregress.collector.server.responses import problem
from dpregress.collector.study import Study

#: Seconds for which a browser may remember that it may send.
_REMEMBERED = "600"


class Crossing:
    """Lets the page of the other one of two collectors send reports here, and nobody else's page.

    The origin is that of the address in the signed study. Reports are all that it may send: no other route answers a
    preflight or names an origin.

    Parameters
    ----------
    study : Study
    holder : int or None
        Which of two collectors this is; None where there is one, which no other page may send to.
    """

    def __init__(self, study: Study, holder: int | None) -> None:
        self.origin = None if holder is None else origin_of(study.holders[1 - holder].address)

    def preflight(self, request: Request) -> Response:
        """The answer to a browser that asks whether a page may send."""
        headers = request.headers
        wanted = headers.get("access-control-request-headers", "content-type").lower().replace(" ", "")
        if (
            not self._comes(request)
            or headers.get("access-control-request-method") != "POST"
            or wanted != "content-type"
        ):
            return problem(405, "Method Not Allowed", headers={"allow": "POST"})
        allowed = {
            "access-control-allow-methods": "POST",
            "access-control-allow-headers": "content-type",
            "access-control-max-age": _REMEMBERED,
        }
        return self.marked(request, Response(None, 204, allowed))

    def marked(self, request: Request, response: Response) -> Response:
        """The response, as one that the other collector's page may read if the request comes from there."""
        if self.origin is None:
            return response
        more = {"vary": "Origin"}
        if self._comes(request):
            more |= {"access-control-allow-origin": self.origin, "access-control-expose-headers": "retry-after"}
        return Response(response.body, response.status_code, {**response.headers, **more})

    def _comes(self, request: Request) -> bool:
        return self.origin is not None and request.headers.getlist("origin") == [self.origin]
