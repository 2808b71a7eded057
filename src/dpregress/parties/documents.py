"""Signed documents: JSON in one canonical form, its digest, and Ed25519 signatures over it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dpregress.coordinates import Vector
from dpregress.errors import InvalidInput
from dpregress.public.columns import is_plain

#: The errors that reading raises if a document does not hold what it should.
MALFORMED = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError)
#: The largest number of people, or of anything else; floats cannot count beyond it.
LARGEST_COUNT = 1 << 40
_LARGEST_NUMBER = 1e308
#: The largest number of bytes: of lists of people and joint releases, and of terms, plans and signatures.
LARGEST_DOCUMENT, LARGEST_TERMS = 1 << 30, 1 << 24
#: Hexadecimal digits of a fingerprint.
_FINGERPRINT = 32
_SHOWN = 40
_MISSING = "the vertical protocol needs the cryptography package: pip install 'dpregress[vertical]'"


def canonical(record: Any) -> bytes:
    """The canonical text of a record: sorted keys, no spaces, UTF-8."""
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def digest(record: Any) -> str:
    """SHA-256 of the canonical text, in hexadecimal."""
    return hashlib.sha256(canonical(record)).hexdigest()


def signed(record: Mapping[str, Any], private_key: bytes) -> str:
    """The document as text with its signature (RFC 8032) in it."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError as error:
        raise InvalidInput(_MISSING) from error
    signature = Ed25519PrivateKey.from_private_bytes(private_key).sign(canonical(record))
    return json.dumps({**record, "signature": signature.hex()}, indent=1, ensure_ascii=False) + "\n"


def check_signature(record: Mapping[str, Any], public_key: str, what: str) -> None:
    """Refuse a document whose signature is not that of its author over exactly these contents.

    Raises
    ------
    InvalidInput
    """
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError as error:
        raise InvalidInput(_MISSING) from error
    body = {key: value for key, value in record.items() if key != "signature"}
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
        key.verify(bytes.fromhex(record["signature"]), canonical(body))
    except (InvalidSignature, KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"{what} was changed after it was signed, or signed by somebody else: refused") from error


def public_half(private_key: bytes) -> str:
    """The public key of a private one, in hexadecimal."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError as error:
        raise InvalidInput(_MISSING) from error
    return Ed25519PrivateKey.from_private_bytes(private_key).public_key().public_bytes_raw().hex()


def keyed(key: bytes, *parts: bytes) -> bytes:
    """HMAC-SHA-256 of parts, each preceded by its length."""
    text = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    return hmac.new(key, text, hashlib.sha256).digest()


def fingerprint(public_key: str) -> str:
    """The fingerprint of a public key, for comparison by people: 128 bits of its SHA-256, in groups of four digits.

    Raises
    ------
    InvalidInput
        For a text that is no key.

    Examples
    --------
    >>> fingerprint("00" * 32)
    '6668-7aad-f862-bd77-6c8f-c18b-8e9f-8e20'
    """
    try:
        found = hashlib.sha256(bytes.fromhex(public_key)).hexdigest()[:_FINGERPRINT]
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{_short(public_key)} is not a public key in hexadecimal") from error
    return "-".join(found[place : place + 4] for place in range(0, _FINGERPRINT, 4))


def fingerprint_in(value: Any, what: str) -> str:
    """A fingerprint as somebody wrote it down, with or without its dashes; InvalidInput for anything else."""
    digits = "".join(value.split()).replace("-", "").lower() if isinstance(value, str) else ""
    if len(digits) != _FINGERPRINT or not set(digits) <= set("0123456789abcdef"):
        raise InvalidInput(
            f"{what} is the fingerprint of a key, {_FINGERPRINT} hexadecimal digits, as `dpregress vertical keys` "
            f"prints it, not {_short(value)}"
        )
    return "-".join(digits[place : place + 4] for place in range(0, _FINGERPRINT, 4))


def read_bytes(path: str | Path, most: int) -> bytes:
    """The contents of an untrusted file of at most this many bytes.

    Raises
    ------
    InvalidInput
        If the file is longer; the excess is not read.
    OSError
    """
    with Path(path).open("rb") as file:
        found = file.read(most + 1)
    if len(found) > most:
        raise InvalidInput(f"{path} is longer than {most:,} bytes, more than any such document has: refused")
    return found


def load_document(path: str | Path, kind: str, *, most: int = LARGEST_DOCUMENT) -> dict[str, Any]:
    """Read a document of one format, of at most this many bytes.

    Raises
    ------
    InvalidInput
        For a file that is not there, too long, cut off, no JSON, of another format, or with what no such file can hold:
        an infinite number or an unpaired surrogate.
    """
    try:
        record = json.loads(read_bytes(path, most).decode("utf-8"))
        canonical(record)
    except InvalidInput:
        raise
    except (OSError, ValueError, RecursionError) as error:
        reason = "it is not there" if isinstance(error, FileNotFoundError) else "it is cut off, or no such file"
        raise InvalidInput(f"cannot read {path} as a {kind.split('.')[-1]}: {reason}") from error
    if not isinstance(record, dict) or record.get("format") != kind:
        found = record.get("format") if isinstance(record, dict) else None
        raise InvalidInput(f"{path} is of format {found!r}, not {kind!r}")
    return record


def packed(values: Vector) -> str:
    """Little-endian float64, in base64."""
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f8").tobytes()).decode()


def unpacked(text: str, length: int, what: str) -> Vector:
    """Read back what :func:`packed` wrote.

    Raises
    ------
    InvalidInput
        For another length, or values that are not finite.
    """
    try:
        values = np.frombuffer(base64.b64decode(text, validate=True), dtype="<f8").astype(np.float64)
    except (ValueError, TypeError) as error:
        raise InvalidInput(f"{what} does not hold numbers: {error}") from error
    if len(values) != length or not np.isfinite(values).all():
        raise InvalidInput(f"{what} holds {len(values)} numbers where the plan has {length}, or some not finite")
    return values


def document_text(record: Any) -> str:
    """A record as indented text."""
    return json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def text_in(value: Any, what: str) -> str:
    """The value, if it is a single line of text; InvalidInput for anything else."""
    if not isinstance(value, str) or not is_plain(value):
        raise InvalidInput(f"{what} is a text without line breaks or control characters, not {_short(value)}")
    return value


def texts_in(value: Any, what: str) -> tuple[str, ...]:
    """The value, if it is a list of texts; InvalidInput for anything else, such as a single text."""
    if not isinstance(value, list):
        raise InvalidInput(f"{what} is a list of texts in brackets, not {_short(value)}")
    return tuple(text_in(each, f"each of {what}") for each in value)


def whole_in(value: Any, what: str, most: int = LARGEST_COUNT) -> int:
    """The value, if it is a whole number of at least 1; InvalidInput for anything else, such as booleans."""
    if type(value) is not int or not 1 <= value <= most:
        raise InvalidInput(f"{what} is a whole number, at least 1 and at most {most}, not {_short(value)}")
    return value


def number_in(value: Any, what: str) -> float:
    """The value, if it is a finite float64 number; InvalidInput for anything else."""
    if type(value) not in (int, float) or not abs(value) < _LARGEST_NUMBER:
        raise InvalidInput(f"{what} is a finite number, not {_short(value)}")
    return float(value)


def truth_in(value: Any, what: str) -> bool:
    """The value, if it is a boolean; InvalidInput for anything else."""
    if type(value) is not bool:
        raise InvalidInput(f"{what} is true or false, not {_short(value)}")
    return value


def known_in(record: Any, names: Collection[str], what: str) -> None:
    """Refuse a table with an unknown term, and any value that is not a table."""
    if not isinstance(record, dict):
        raise InvalidInput(f"{what} is a table of {', '.join(names)}, not {_short(record)}")
    unknown = sorted(set(record) - set(names))
    if unknown:
        raise InvalidInput(f"{what} has a term {unknown[0]!r} that no plan knows: it takes {', '.join(names)}")


def _short(value: Any) -> str:
    """A value in a message: a hostile file may hold an endless one."""
    kinds = {dict: "a table", list: "a list", type(None): "nothing"}
    if type(value) in kinds:
        return kinds[type(value)]
    if type(value) is int and abs(value) > LARGEST_COUNT:
        return "one so large"
    found = repr(value)
    return found if len(found) <= _SHOWN else f"{found[:_SHOWN]}.."
