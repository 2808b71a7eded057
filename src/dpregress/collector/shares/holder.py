"""The two collectors of a study, each known by a name, an address and a signing key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpregress.collector.addresses import checked_address, is_numbered, server_of
from dpregress.errors import InvalidInput
from dpregress.parties.documents import (
    LARGEST_TERMS,
    check_signature,
    fingerprint,
    known_in,
    load_document,
    public_half,
    signed,
    text_in,
)

#: Collectors of a study in this mode.
HOLDERS = 2
#: What everybody is told of this mode.
SHARE_PROMISE = "private against one collector, or against both if they do not collude"
UNBOUNDED = "no proof that answers are bounded: one dishonest user or collector can move the result anywhere"
_FORMAT = "dpregress.collector/1"
_FIELDS = ("name", "address", "key")
_LONGEST_NAME = 60
_KEY_DIGITS = 64


@dataclass(frozen=True)
class ShareHolder:
    """One of the two collectors.

    Parameters
    ----------
    name : str
        Letters, digits, ``-`` and ``_``.
    address : str
        Where devices reach it, such as ``https://clinic.example``.
    key : str
        The public half of its signing key (Ed25519), in hexadecimal.
    """

    name: str
    address: str
    key: str

    def __post_init__(self) -> None:
        plain = self.name.replace("-", "").replace("_", "")
        if not (plain.isalnum() and plain.isascii() and len(self.name) <= _LONGEST_NAME):
            raise InvalidInput(f"the name of a collector has letters, digits, - and _ only, not {self.name!r}")
        parts = checked_address(self.address)
        if parts.path or parts.query or parts.fragment or "@" in parts.netloc:
            raise InvalidInput("the address of a collector is https:// and a host, such as https://clinic.example")
        if is_numbered(self.address):
            raise InvalidInput("a page cannot name an IPv6 address in its policy: give the collector's host name")
        if len(self.key) != _KEY_DIGITS or not set(self.key) <= set("0123456789abcdef"):
            raise InvalidInput(f"the key of a collector has {_KEY_DIGITS} hexadecimal digits")

    def encode(self) -> dict[str, str]:
        """Plain values, for files."""
        return {"name": self.name, "address": self.address, "key": self.key}

    @classmethod
    def decode(cls, record: Any) -> ShareHolder:
        """Read back what :meth:`encode` wrote; InvalidInput, or an error of malformed files."""
        known_in(record, _FIELDS, "a collector")
        return cls(*(text_in(record[name], f"the {name} of a collector") for name in _FIELDS))

    @property
    def fingerprint(self) -> str:
        """The fingerprint of its key."""
        return fingerprint(self.key)


def check_holders(holders: Sequence[ShareHolder]) -> None:
    """Refuse anything but two collectors that differ in everything."""
    if len(holders) != HOLDERS:
        raise InvalidInput(f"shares are for {HOLDERS} collectors, not {len(holders)}")
    one, other = holders
    if (
        one.name.lower() == other.name.lower()
        or server_of(one.address) == server_of(other.address)
        or one.key == other.key
    ):
        raise InvalidInput("the two collectors of a study need names, addresses and keys of their own")


def identity_text(name: str, address: str, private_key: bytes) -> str:
    """What a collector hands to whoever makes the study: its name, address and public key, signed."""
    holder = ShareHolder(name, address, public_half(private_key))
    return signed({"format": _FORMAT, **holder.encode()}, private_key)


def load_identity(path: str | Path) -> ShareHolder:
    """Read what :func:`identity_text` wrote.

    Raises
    ------
    InvalidInput
        For another file, or one that was changed.
    """
    record = load_document(path, _FORMAT, most=LARGEST_TERMS)
    try:
        holder = ShareHolder.decode({name: record[name] for name in _FIELDS})
    except KeyError as error:
        raise InvalidInput(f"{path} lacks {error}: make it with `dpregress collect identity`") from error
    check_signature(record, holder.key, str(path))
    return holder


def place_of(holders: Sequence[ShareHolder], private_key: bytes) -> int:
    """The place of the collector with this signing key among those of a study; InvalidInput if it is none of them."""
    own = public_half(private_key)
    for place, each in enumerate(holders):
        if each.key == own:
            return place
    names = " and ".join(each.name for each in holders)
    raise InvalidInput(f"this is the key of no collector of the study ({names}): give the --key of one of them")
