r"""Additive shares of integers modulo 2^64: a seed of 16 bytes, and the integers minus the words of the seed.

The words of a seed are AES-128 in counter mode from counter 0 with the seed as key (NIST SP 800-38A), read as
little-endian 64-bit integers. The seed alone is independent of the integers. Without the seed, the other share is
indistinguishable from uniform words as long as AES-128 is a pseudorandom permutation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpregress.errors import InvalidInput
from dpregress.mechanisms.sketching import keystream

#: Bytes of a seed.
SHARE_SEED_BYTES = 16
#: The words of a share.
WORD = np.dtype("<u8")
_WORDS_IN_BLOCK = 2


def seed_words(seed: bytes, length: int) -> NDArray[np.uint64]:
    """The words of a seed, of shape (length,).

    Examples
    --------
    >>> [hex(word) for word in seed_words(bytes(16), 2)]
    ['0x3b2c8aefd44be966', '0x2e2b34ca59fa4c88']
    """
    if len(seed) != SHARE_SEED_BYTES:
        raise InvalidInput(f"the seed of a share has {SHARE_SEED_BYTES} bytes, not {len(seed)}")
    blocks = -(-length // _WORDS_IN_BLOCK)
    return keystream(seed, 0, blocks).view(WORD)[:length].astype(np.uint64)


def additive_share(integers: NDArray[np.int64], seed: bytes) -> NDArray[np.uint64]:
    """The share beside a seed, of shape (p,): the integers minus the words of the seed, modulo 2^64."""
    return integers.astype(np.uint64) - seed_words(seed, len(integers))


def sum_of_shares(shares: Sequence[NDArray[np.uint64]]) -> NDArray[np.int64]:
    """The sum of shares modulo 2^64, as signed integers."""
    return np.asarray(np.stack(shares).sum(axis=0, dtype=np.uint64)).astype(np.int64)
