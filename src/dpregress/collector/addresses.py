"""The addresses of collectors: reports travel encrypted, except on the same machine."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from dpregress.display import shown
from dpregress.errors import InvalidInput

_PORTS = {"http": 80, "https": 443}


def checked_address(address: str) -> SplitResult:
    """The parts of an address.

    Raises
    ------
    InvalidInput
        For anything but ``https://`` and a host, or ``http://`` and a loopback address.
    """
    try:
        parts = urlsplit(address)
        _ = parts.port  # is read here, so that it is refused here
    except ValueError as error:
        raise InvalidInput(f"{shown(address)} is not the address of a collector: {error}") from error
    if parts.scheme not in _PORTS or not parts.hostname:
        raise InvalidInput(f"the address of a collector is https:// and a host, not {shown(address)}")
    if parts.scheme == "http" and not _is_loopback(parts.hostname):
        raise InvalidInput(
            f"{shown(address)} is not encrypted: use https://; http:// is for loopback addresses such as 127.0.0.1"
        )
    return parts


def server_of(address: str) -> tuple[str, int]:
    """The host and port that an address leads to, however it is spelt."""
    parts = checked_address(address)
    return (parts.hostname or "").rstrip("."), _PORTS[parts.scheme] if parts.port is None else parts.port


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
