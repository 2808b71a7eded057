"""The routes of a collector."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from dpregress.collector.addresses import origin_of
from dpregress.collector.admission import REASONS, Admission, utc_now
from dpregress.collector.readout import read_out
from dpregress.collector.server.crossing import Crossing
from dpregress.collector.server.limits import RateLimit
from dpregress.collector.server.metrics import metrics_text
from dpregress.collector.server.openapi import interface
from dpregress.collector.server.responses import answer, document, load_pages, outcome_response, problem
from dpregress.collector.server.writer import Writer
from dpregress.collector.store import Arrival, Outcome, Store
from dpregress.collector.study import Study
from dpregress.errors import DPRegressError, NotAvailable, StoreError

#: Reports in a batch.
LARGEST_BATCH = 100
_OCTETS = "application/octet-stream"
#: Seconds for which a public count may be old.
_FRESH = 1.0


@dataclass
class Settings:
    """How a collector runs.

    Parameters
    ----------
    admin_key : bytes
        32 bytes; whoever has them may read results.
    signature : bytes or None
        The signature of the study, as JSON.
    public : Any
        The public rows of the study, for confidence intervals.
    rate, burst : float
        Requests a second from one address, and at once.
    patience : float
        Seconds for the body of a request.
    clock : callable
        The time in UTC.
    holder : int or None
        Which of two collectors of the study this is.
    """

    admin_key: bytes = field(repr=False)
    signature: bytes | None = None
    public: Any = None
    rate: float = 20.0
    burst: float = 100.0
    patience: float = 10.0
    clock: Callable[[], datetime] = field(default=utc_now)
    holder: int | None = None


class Collector:
    """What the routes share: the rules, the writer, and a connection for reading.

    Parameters
    ----------
    study : Study
    opened : callable
        Opens the store.
    settings : Settings
    """

    def __init__(self, study: Study, opened: Callable[[], Store], settings: Settings) -> None:
        self.study, self.settings = study, settings
        self.admission = Admission(study, settings.clock, settings.holder)
        self.writer = Writer(opened, lambda: self.admission.hour)
        self.limit = RateLimit(settings.rate, settings.burst)
        self.pages = load_pages([origin_of(each.address) for each in study.holders])
        self._crossing = Crossing(study, settings.holder)
        self._opened, self._reader, self._counting = opened, asyncio.Lock(), asyncio.Lock()
        self._store: Store | None = None
        self._known: tuple[float, dict[str, Any]] | None = None
        self._text = study.text().encode()

    def app(self) -> Starlette:
        """The ASGI application."""
        handlers: dict[Any, Any] = {HTTPException: _refused, Exception: _failed}
        return Starlette(routes=self._routes(), lifespan=self._lifespan, exception_handlers=handlers)

    def _routes(self) -> list[Route]:
        handled: dict[str, tuple[Callable[[Request], Coroutine[Any, Any, Response]], str]] = {
            "/api/reports/batch": (self._batch, "POST"),
            "/api/study": (self._study, "GET"),
            "/api/study/signature": (self._signature, "GET"),
            "/api/status": (self._status, "GET"),
            "/api/result": (self._result, "GET"),
            "/health": (self._health, "GET"),
            "/ready": (self._ready, "GET"),
            "/metrics": (self._metrics, "GET"),
            "/openapi.json": (self._openapi, "GET"),
            "/study": (self._page, "GET"),
            "/dashboard": (self._page, "GET"),
            "/static/{name}": (self._page, "GET"),
            "/": (self._home, "GET"),
        }
        own = [Route(path, handler, methods=[method]) for path, (handler, method) in handled.items()]
        sending = ["POST"] if self.settings.holder is None else ["POST", "OPTIONS"]
        return [Route("/api/reports", self._sent, methods=sending), *own]

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        self.writer.start()
        try:
            yield
        finally:
            await asyncio.to_thread(self.writer.close)
            if self._store is not None:
                await asyncio.to_thread(self._store.close)

    # ------------------------------------------------------------ reports

    async def _sent(self, request: Request) -> Response:
        if request.method == "OPTIONS":
            return self._crossing.preflight(request)
        return self._crossing.marked(request, await self._one(request))

    async def _one(self, request: Request) -> Response:
        body = await self._body(request, self.admission.length)
        if isinstance(body, Response):
            return body
        found = self.admission.check(body)
        if isinstance(found, Outcome):
            self.writer.refuse(found.reason or "")
            return outcome_response(found)
        try:
            (outcome,) = await self.writer.put([found])
        except StoreError:
            return self._turned_away(503, "busy", 1.0)
        return outcome_response(outcome)

    async def _batch(self, request: Request) -> Response:
        length = self.admission.length
        body = await self._body(request, LARGEST_BATCH * length)
        if isinstance(body, Response):
            return body
        if not body or len(body) % length:
            return self._turned_away(422, "wrong-size")
        checked = [self.admission.check(body[at : at + length]) for at in range(0, len(body), length)]
        arrivals = [each for each in checked if isinstance(each, Arrival)]
        try:
            stored = iter(await self.writer.put(arrivals) if arrivals else [])
        except StoreError:
            return self._turned_away(503, "busy", 1.0)
        results = []
        for each in checked:
            outcome = each
            if isinstance(outcome, Outcome):
                self.writer.refuse(outcome.reason or "")
            else:
                outcome = next(stored)
            results.append({"status": outcome.status, "reason": outcome.reason})
        return answer({"results": results})

    async def _body(self, request: Request, most: int) -> bytes | Response:
        """The body of a request of at most so many bytes, or a refusal."""
        wait = self.limit.wait(request.client.host if request.client else "")
        if wait:
            return self._turned_away(429, "rate", wait)
        headers = request.headers
        if headers.get("content-type", "").partition(";")[0].strip().lower() != _OCTETS:
            return self._turned_away(415, "wrong-type")
        announced = headers.get("content-length", "0")
        if not announced.isdigit() or int(announced) > most:
            return self._turned_away(413, "too-long")
        try:
            async with asyncio.timeout(self.settings.patience):
                parts, size = [], 0
                async for part in request.stream():
                    parts.append(part)
                    size += len(part)
                    if size > most:
                        return self._turned_away(413, "too-long")
                return b"".join(parts)
        except TimeoutError:
            return self._turned_away(408, "slow")
        except ClientDisconnect:
            return self._turned_away(408, "slow")

    def _turned_away(self, status: int, reason: str, wait: float = 0.0) -> Response:
        """A refusal before the rules are asked. The connection ends where its body was not read."""
        self.writer.refuse(reason)
        headers = {"connection": "close"} if reason in ("too-long", "slow", "rate", "wrong-type") else {}
        return problem(status, REASONS[reason], reason, wait=wait, headers=headers)

    # ------------------------------------------------------------ reading

    async def _study(self, _: Request) -> Response:
        return document(self._text, self.study.digest.hex())

    async def _signature(self, _: Request) -> Response:
        if self.settings.signature is None:
            return problem(404, "this study is not signed", "unsigned")
        return document(self.settings.signature, hashlib.sha256(self.settings.signature).hexdigest())

    async def _status(self, _: Request) -> Response:
        async with self._counting:  # one reads, and those who wait take what it read
            now = asyncio.get_running_loop().time()
            if self._known is None or now - self._known[0] > _FRESH:
                try:
                    self._known = now, await self._read(self._counts)
                except DPRegressError:
                    return problem(503, REASONS["busy"], "busy", wait=1.0)
        return answer({**self._known[1], "state": self.admission.state})

    def _counts(self, store: Store) -> dict[str, Any]:
        terms = self.admission.terms
        hours = [
            {"hour": datetime.fromtimestamp(hour * 3600, UTC).strftime("%Y-%m-%dT%H:00:00Z"), "reports": reports}
            for hour, reports in store.arrivals().items()
        ]
        told = terms.encode()
        return {
            "study": self.study.digest.hex(),
            "title": self.study.title,
            **{name: told[name] for name in ("opens", "closes", "minimum")},
            "accepted": store.count,
            "arrivals": hours,
            "refused": store.refused(),
        }

    async def _result(self, request: Request) -> Response:
        given = request.headers.get("authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {self.settings.admin_key.hex()}".encode()):
            return problem(401, "send the admin key", "no-key", headers={"www-authenticate": "Bearer"})
        if self.study.holders:
            return problem(403, "this collector holds shares: results follow from the sums of both", "shares")
        try:
            found = await self._read(lambda store: read_out(store, public=self.settings.public))
        except NotAvailable as refusal:
            return problem(403, str(refusal), "too-few")
        except DPRegressError:
            return problem(503, REASONS["busy"], "busy", wait=1.0)
        return answer(found.encode())

    async def _read(self, read: Callable[[Store], Any]) -> Any:
        """Read in another thread, one reader at a time."""
        async with self._reader:
            return await asyncio.to_thread(self._reading, read)

    def _reading(self, read: Callable[[Store], Any]) -> Any:
        if self._store is None:
            self._store = self._opened()
        try:
            return read(self._store)
        except DPRegressError:
            raise
        except Exception as error:  # of the database: the next reader connects again
            self._store = None
            raise StoreError("the store cannot be read") from error

    # ------------------------------------------------------------ the service

    async def _health(self, _: Request) -> Response:
        return answer({"status": "alive"})

    async def _ready(self, _: Request) -> Response:
        if self.writer.ready:
            return answer({"status": "ready"})
        return problem(503, "the store cannot be written to", "busy", wait=1.0)

    async def _metrics(self, _: Request) -> Response:
        text = metrics_text(self.writer.counters, self.writer.waiting, self.writer.ready)
        return PlainTextResponse(text, headers={"cache-control": "no-store"})

    async def _openapi(self, _: Request) -> Response:
        return answer(interface(self.admission.length, LARGEST_BATCH))

    async def _page(self, request: Request) -> Response:
        name = request.path_params.get("name") or f"{request.url.path.strip('/')}.html"
        page = self.pages.get(name)
        return page if page is not None else problem(404, "there is no such page")

    async def _home(self, _: Request) -> Response:
        return RedirectResponse("/study", 307)


async def _refused(_: Request, error: HTTPException) -> Response:
    return problem(error.status_code, error.detail, headers=error.headers)


async def _failed(_: Request, __: Exception) -> Response:
    return problem(500, "the collector failed; send the same bytes again later")
