"""Sending a report: the same bytes until the collector has answered."""

from __future__ import annotations

import json
import time
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Self

from dpregress.collector.addresses import checked_address
from dpregress.display import shown
from dpregress.errors import OutputError

_HEADERS = {"content-type": "application/octet-stream"}
#: Answers after which the same bytes are sent again, how often, and the seconds in between.
_AGAIN, _TRIES, _PAUSE, _LONGEST_PAUSE = (408, 429, 500, 502, 503, 504), 8, 0.5, 30.0
_PATIENCE = 30.0
#: The largest answer that is read.
_LARGEST = 1 << 26


class Connection:
    """A connection to a collector that is opened again when it breaks.

    Parameters
    ----------
    url : str
        ``https://host``, with a path if the collector stands behind one; ``http://`` for loopback addresses only.
    """

    def __init__(self, url: str) -> None:
        parts = checked_address(url)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self.where, self._path = shown(url), parts.path.rstrip("/")
        self._connection = kind(parts.hostname or "", parts.port, timeout=_PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def send(self, report: bytes, path: str = "/api/reports") -> tuple[int, dict[str, Any]]:
        """Send a report, or several to another path, until there is an answer: its status and contents.

        Raises
        ------
        OutputError
            When there is none after some tries. The report may have been stored: send the same bytes again later.
        """
        pause = _PAUSE
        for _ in range(_TRIES):
            try:
                self._connection.request("POST", f"{self._path}{path}", report, _HEADERS)
                response = self._connection.getresponse()
                content = response.read(_LARGEST)
                if response.status not in _AGAIN:
                    return response.status, _contents(content)
                pause = _seconds(response.headers.get("retry-after"), pause)
            except (OSError, HTTPException):
                pass
            self._connection.close()
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        raise OutputError(f"{self.where} does not answer: send the same report again later")


def _contents(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):  # a collector may answer anything
        return {}
    return found if isinstance(found, dict) else {}


def _seconds(told: str | None, otherwise: float) -> float:
    return min(float(told), _LONGEST_PAUSE) if told is not None and told.isdigit() else otherwise
