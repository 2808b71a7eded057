"""Limits that keep one client from holding up the others: requests by address, slow headers, long headers."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

#: Addresses that are remembered, in memory only.
_ADDRESSES = 10_000
#: Bytes of a request before its body.
_LONGEST_HEADERS = 32_768


class RateLimit:
    """A token bucket for each address.

    Parameters
    ----------
    rate : float
        Requests a second in the long run.
    burst : float
        Requests at once.
    clock : callable
        Seconds.
    """

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self.burst, self._clock = rate, burst, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, address: str) -> float:
        """Seconds until this address may ask again; 0 if it may now, which is counted."""
        now = self._clock()
        left, last = self._left.pop(address, (self.burst, now))
        left = min(self.burst, left + (now - last) * self.rate)
        allowed = left >= 1
        self._left[address] = (left - allowed, now)
        while len(self._left) > _ADDRESSES:
            self._left.popitem(last=False)
        return 0.0 if allowed else (1 - left) / self.rate


class GuardedProtocol(HttpToolsProtocol):
    """HTTP that closes a connection whose headers come too slowly or are too long.

    Between requests the server's keep-alive time holds; a body has a time of its own.
    """

    #: Seconds for the headers of a request.
    patience = 10.0
    _timer: asyncio.TimerHandle | None = None
    _begun = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        if self._timer is None and (self.cycle is None or self.cycle.response_complete):
            self._watch()
        self._begun += len(data)
        super().data_received(data)
        if self._timer is not None and self._begun > _LONGEST_HEADERS:
            self.transport.close()

    def on_headers_complete(self) -> None:
        self._unwatch()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unwatch()
        super().connection_lost(exc)

    def _watch(self) -> None:
        self._begun = 0
        self._timer = self.loop.call_later(self.patience, self.transport.close)

    def _unwatch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
