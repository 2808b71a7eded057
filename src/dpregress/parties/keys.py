"""The secrets of a party: its signing key and its share of the sketch seed."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from dpregress.errors import InvalidInput
from dpregress.mechanisms.randomness import shared_seed
from dpregress.parties.documents import public_half

_KEY, _SHARE = "signing.key", "seed.share"
_BYTES = 32


@dataclass(frozen=True, repr=False)
class PartyKeys:
    """A party's secrets.

    Attributes
    ----------
    private_key : bytes
        Ed25519.
    seed_share : bytes
        The signature of the plan commits to it, and the alignment reveals it.
    """

    private_key: bytes
    seed_share: bytes

    @property
    def public_key(self) -> str:
        """The public half of the signing key, in hexadecimal."""
        return public_half(self.private_key)

    @property
    def commitment(self) -> str:
        """SHA-256 of the seed share, which fixes it before any other share is known."""
        return committed(self.seed_share)


def committed(secret: bytes) -> str:
    """The commitment to a secret of 32 random bytes."""
    return hashlib.sha256(b"dpregress/commitment/1/" + secret).hexdigest()


def new_identity(folder: Path) -> PartyKeys:
    """Make a party's secrets in a folder that only its owner can enter.

    Raises
    ------
    InvalidInput
        If there are secrets already; they are never replaced.
    """
    if (folder / _KEY).exists() or (folder / _SHARE).exists():
        raise InvalidInput(f"{folder} already holds a party's keys: choose another --keys")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in (_KEY, _SHARE):
        write_secret(folder / name, shared_seed(None))
    return open_identity(folder)


def open_identity(folder: Path) -> PartyKeys:
    """Read a party's secrets.

    Raises
    ------
    InvalidInput
        If they do not exist or are damaged.
    """
    return PartyKeys(read_secret(folder / _KEY), read_secret(folder / _SHARE))


def has_identity(folder: Path) -> bool:
    """Whether a folder holds secrets."""
    return (folder / _KEY).exists()


def write_secret(path: Path, secret: bytes) -> None:
    """Write 32 bytes in hexadecimal, readable only by the owner: a new file, whole or not at all.

    Raises
    ------
    FileExistsError
        Secrets are never replaced.
    """
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.unlink(missing_ok=True)
    new.touch(mode=0o600, exist_ok=False)
    try:
        with new.open("w", encoding="ascii") as file:
            file.write(secret.hex() + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.link(new, path)
    finally:
        new.unlink()


def read_secret(path: Path) -> bytes:
    """Read 32 bytes.

    Raises
    ------
    InvalidInput
        For a file that does not hold them.
    """
    try:
        secret = bytes.fromhex(path.read_text(encoding="ascii").strip())
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot read the secret {path}: {getattr(error, 'strerror', None) or error}") from error
    if len(secret) != _BYTES:
        raise InvalidInput(f"{path} holds {len(secret)} bytes, not {_BYTES}: it is damaged")
    return secret
