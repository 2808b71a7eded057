"""Running a collector with uvicorn."""

from __future__ import annotations

import signal
import socket
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from dpregress.collector.server.app import Collector
from dpregress.collector.server.limits import GuardedProtocol

#: Connections at once, and seconds: between requests of a connection, and for what runs when the service stops.
_CONNECTIONS, _KEEP_ALIVE, _DRAIN = 1000, 15, 20


@dataclass(frozen=True)
class Address:
    """Where a collector listens.

    Parameters
    ----------
    host : str
    port : int
        0 takes a free one.
    certificate, key : Path or None
        TLS without a proxy.
    proxies : str
        Addresses of reverse proxies whose ``X-Forwarded-For`` is believed, separated by commas.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    certificate: Path | None = None
    key: Path | None = None
    proxies: str = "127.0.0.1"


def http_server(collector: Collector, address: Address) -> uvicorn.Server:
    """The server of a collector. Addresses of clients are written nowhere."""
    config = uvicorn.Config(
        collector.app(),
        host=address.host,
        port=address.port,
        http=GuardedProtocol,
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,  # the handlers of the process are its own
        log_level="warning",
        server_header=False,
        proxy_headers=True,
        forwarded_allow_ips=address.proxies,
        limit_concurrency=_CONNECTIONS,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=_DRAIN,
        ssl_certfile=address.certificate,
        ssl_keyfile=address.key,
    )
    return uvicorn.Server(config)


def run_until_stopped(server: uvicorn.Server, listener: socket.socket) -> None:
    """Serve until an interrupt or SIGTERM, and return when everything is committed."""
    for each in (signal.SIGINT, signal.SIGTERM):  # which the server raises once more when it has stopped
        signal.signal(each, lambda *_: None)
    server.run(sockets=[listener])
