"""The addresses of collectors: reports travel encrypted, except on the same machine."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import SplitResult, urlsplit

from dpregress.display import shown
from dpregress.errors import InvalidInput

_PORTS = {"http": 80, "https": 443}
#: A name as it stands in a certificate; its last label is no number, which would be another spelling of an address.
_LABEL = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"
_NAME = re.compile(rf"({_LABEL}\.)*(?!0x|[0-9]+\.?$){_LABEL}\.?")
#: Characters of an address of the form scheme://host:port, whose host has at most 253.
_PLAIN = re.compile(r"[!-$&-~]{1,280}")


def checked_address(address: str) -> SplitResult:
    """The parts of an address.

    Raises
    ------
    InvalidInput
        For anything but ``https://`` and a host, or ``http://`` and a loopback address. A host is a name of ASCII
        letters (of other letters the name that begins with xn--) or an IP address as it is usually written.
    """
    if not _PLAIN.fullmatch(address) or "#" in address:
        raise InvalidInput(f"{shown(address)} is not the address of a collector: write https:// and a host in ASCII")
    try:
        parts = urlsplit(address)
        if parts.port == 0:  # is read here, so that it is refused here
            raise ValueError("there is no port 0")
    except ValueError as error:
        raise InvalidInput(f"{shown(address)} is not the address of a collector: {error}") from error
    if parts.scheme not in _PORTS or not parts.hostname:
        raise InvalidInput(f"the address of a collector is https:// and a host, not {shown(address)}")
    found = _ip(parts.hostname)
    plain = "[" not in parts.netloc and _NAME.fullmatch(parts.hostname) if found is None else not found.is_unspecified
    if not plain:
        raise InvalidInput(f"{shown(address)} has no plain host: write its name in ASCII letters, or its IP address")
    if parts.scheme == "http" and not _is_loopback(parts.hostname):
        raise InvalidInput(
            f"{shown(address)} is not encrypted: use https://; http:// is for loopback addresses such as 127.0.0.1"
        )
    return parts


def server_of(address: str) -> tuple[str, int]:
    """The host that an address leads to, however it is spelt, and 0; on the same machine, the port of the service."""
    parts = checked_address(address)
    host = (parts.hostname or "").rstrip(".")
    if not _is_loopback(host) and not host.endswith(".localhost"):
        return str(_ip(host) or host), 0
    return "localhost", _PORTS[parts.scheme] if parts.port is None else parts.port


def is_numbered(address: str) -> bool:
    """Whether the host is an IPv6 address, which the policies of web pages cannot name."""
    return isinstance(_ip(checked_address(address).hostname or ""), IPv6Address)


def origin_of(address: str) -> str:
    """The origin of an address, as browsers write it: without the usual port, and in small letters."""
    parts = checked_address(address)
    host = parts.hostname or ""
    port = "" if parts.port in (None, _PORTS[parts.scheme]) else f":{parts.port}"
    return f"{parts.scheme}://{f'[{_ip(host)}]' if ':' in host else host}{port}"


def _is_loopback(host: str) -> bool:
    found = _ip(host)
    return host.rstrip(".") == "localhost" if found is None else found.is_loopback


def _ip(host: str) -> IPv4Address | IPv6Address | None:
    """The IP address that a host is; None for a name."""
    try:
        return ip_address(host)
    except ValueError:
        return None
