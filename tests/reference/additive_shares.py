"""Known answers of shares, computed without the library: for devices in other languages.

``python -m tests.reference.additive_shares`` writes ``tests/collector/vectors/shares.json``.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB

VECTORS = Path(__file__).parents[1] / "collector" / "vectors" / "shares.json"
_MODULUS = 1 << 64
_CASES: tuple[tuple[str, list[int]], ...] = (
    ("00" * 16, [0, 0, 0]),
    ("000102030405060708090a0b0c0d0e0f", [1, -1, 2**31 - 1, -(2**31), 12345]),
    ("ff" * 16, [(-1) ** k * 3**k for k in range(21)]),
)


def words(seed: bytes, length: int) -> list[int]:
    """AES-128 of the blocks 0, 1, 2, .., each block two little-endian words."""
    stream, block = b"", 0
    while len(stream) < 8 * length:
        encryptor = Cipher(AES(seed), ECB()).encryptor()
        stream += encryptor.update(block.to_bytes(16, "big"))
        block += 1
    return [int.from_bytes(stream[8 * k : 8 * k + 8], "little") for k in range(length)]


def known_shares() -> dict[str, Any]:
    """Shares of integers, and tokens for either collector."""
    cases = []
    for seed, integers in _CASES:
        mask = words(bytes.fromhex(seed), len(integers))
        share = [(value - word) % _MODULUS for value, word in zip(integers, mask, strict=True)]
        payload = b"".join(word.to_bytes(8, "little") for word in share).hex()
        cases.append({"seed": seed, "integers": integers, "words": [f"{word:016x}" for word in mask], "share": payload})
    token = bytes(range(32))
    label = b"dpregress/collector-token/1/"
    tokens = [hashlib.sha256(label + bytes([holder]) + token).hexdigest() for holder in (0, 1)]
    return {"shares": cases, "token": token.hex(), "tokens": tokens}


if __name__ == "__main__":
    VECTORS.write_text(json.dumps(known_shares(), indent=1) + "\n", encoding="utf-8")
