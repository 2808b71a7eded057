r"""Shared sketch matrices: sparse signs, dense signs, or a randomised Hadamard transform, from one seed.

The bits come from AES-256 in counter mode. Its key is derived from the seed by HKDF-SHA-256 with a label, and the
counter is a function of the row number, so that the bits are the same on every machine and for any chunk sizes. B is
public and hides nothing; noise is never drawn from these bits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from dpregress.coordinates import Matrix
from dpregress.errors import InvalidInput, check_choice
from dpregress.queries import SketchMatrix

#: Bytes of a shared seed.
SEED_BYTES = 32
_BLOCK = 16  # bytes of an AES block
_LABEL = b"dpregress/mixing/1/"
#: Nonzeros in a column of sparse signs: with 8, a few outlying rows are spread as well as by dense signs.
_NONZEROS = 8
#: Rows of one step of the Hadamard transform, a power of two; bytes of signs of one step of dense mixing.
_HADAMARD_ROWS = 1 << 14
_DENSE_CELLS = 1 << 21


def derived_key(seed: bytes, label: bytes) -> bytes:
    """A 32-byte key by HKDF-SHA-256 without salt (RFC 5869)."""
    try:
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF
    except ImportError as error:
        raise InvalidInput("row sketches need the cryptography package: pip install 'dpregress[vertical]'") from error
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=label).derive(seed)


def keystream(key: bytes, counter: int, blocks: int) -> NDArray[np.uint8]:
    """``blocks`` blocks of AES-CTR from a 128-bit big-endian counter (NIST SP 800-38A, section 6.5)."""
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import AES
    from cryptography.hazmat.primitives.ciphers.modes import CTR

    start = (int(counter) % (1 << 128)).to_bytes(_BLOCK, "big")
    stream = Cipher(AES(key), CTR(start)).encryptor().update(bytes(blocks * _BLOCK))
    return np.frombuffer(stream, dtype=np.uint8)


class SharedBits:
    """Blocks of bits, each a function of a seed, a label and the number of the block.

    Parameters
    ----------
    seed : bytes
        32 bytes, known to all parties.
    label : str
        The purpose of the bits: different labels give unrelated bits.
    """

    def __init__(self, seed: bytes, label: str) -> None:
        if len(seed) != SEED_BYTES:
            raise InvalidInput(f"a shared seed has {SEED_BYTES} bytes, not {len(seed)}")
        self._key = derived_key(seed, _LABEL + label.encode())

    def words(self, first: int, blocks: int) -> NDArray[np.uint32]:
        """Little-endian 32-bit words of blocks ``first, first + 1, ..``: four in each block."""
        return keystream(self._key, first, blocks).view("<u4")


class SparseSigns(SketchMatrix):
    """Eight entries +-1 in each column, one in each eighth of the rows (fewer if k < 8).

    The position of an entry among m rows is ``floor(u m / 2^31)`` with a 31-bit u, uniform up to ``m 2^-31``.

    Parameters
    ----------
    n, k : int
    seed : bytes

    References
    ----------
    Kane, Nelson (2014), the block construction of sparse Johnson-Lindenstrauss transforms.
    """

    def __init__(self, n: int, k: int, seed: bytes) -> None:
        super().__init__(n, k)
        self._bits = SharedBits(seed, "sparse")
        edges = np.arange(min(_NONZEROS, k) + 1, dtype=np.uint64) * np.uint64(k) // np.uint64(min(_NONZEROS, k))
        self._first, self._rows = edges[:-1], np.diff(edges)

    @property
    def column_norm(self) -> float:
        return math.sqrt(len(self._first))

    def columns(self, first_row: int, rows: int) -> tuple[NDArray[np.int32], Matrix]:
        """Places and signs of the entries of some columns, each of shape (rows, entries)."""
        words = self._bits.words(2 * first_row, 2 * rows).reshape(rows, _NONZEROS)[:, : len(self._first)]
        places = ((words >> 1).astype(np.uint64) * self._rows >> np.uint64(31)) + self._first
        return np.asarray(places, dtype=np.int32), _signs(words & 1)

    def apply(self, x: Matrix, first_row: int) -> Matrix:
        places, signs = self.columns(first_row, len(x))
        starts = np.arange(0, places.size + 1, places.shape[1], dtype=np.int32)
        by_row = csr_matrix((signs.reshape(-1), places.reshape(-1), starts), shape=(len(x), self.k))
        return np.asarray(by_row.T @ x)


class DenseSigns(SketchMatrix):
    """All entries are +-1: the published matrix, generated block by block.

    Parameters
    ----------
    n, k : int
    seed : bytes

    References
    ----------
    Achlioptas (2003); Wu et al. (2022), Algorithm 2.
    """

    def __init__(self, n: int, k: int, seed: bytes) -> None:
        super().__init__(n, k)
        self._bits = SharedBits(seed, "dense")
        self._blocks = -(-k // (8 * _BLOCK))

    @property
    def column_norm(self) -> float:
        return math.sqrt(self.k)

    def signs(self, first_row: int, rows: int) -> Matrix:
        """Some columns of B as rows, of shape (rows, k)."""
        words = self._bits.words(self._blocks * first_row, self._blocks * rows)
        bits = np.unpackbits(words.view(np.uint8).reshape(rows, -1), axis=1, count=self.k)
        return _signs(bits)

    def apply(self, x: Matrix, first_row: int) -> Matrix:
        total = np.zeros((self.k, x.shape[1]))
        step = max(1, _DENSE_CELLS // self.k)
        for start in range(0, len(x), step):
            part = x[start : start + step]
            total += self.signs(first_row + start, len(part)).T @ part
        return total


class Hadamard(SketchMatrix):
    """k distinct random rows of ``H D``, with H the Hadamard matrix of order 2^q >= n and D a diagonal of random signs.

    Entry (r, i) is ``(-1)^popcount(S_r & i) D_i``. A step transforms 2^14 rows at once. The higher bits of
    the row number change only signs, so that rows can come in chunks of any size.

    Parameters
    ----------
    n, k : int
        k at most the order of H.
    seed : bytes

    References
    ----------
    Ailon, Chazelle (2009); Tropp (2011).
    """

    def __init__(self, n: int, k: int, seed: bytes) -> None:
        super().__init__(n, k)
        order = 1 << max(n - 1, 1).bit_length()
        if k > order:
            raise InvalidInput(f"a Hadamard sketch of {n} rows has at most {order} rows, not {k}: choose a smaller k")
        self._signs = SharedBits(seed, "hadamard signs")
        self._chosen = _distinct(SharedBits(seed, "hadamard rows"), k, order)

    @property
    def column_norm(self) -> float:
        return math.sqrt(self.k)

    def apply(self, x: Matrix, first_row: int) -> Matrix:
        total = np.zeros((self.k, x.shape[1]))
        low = self._chosen & np.uint64(_HADAMARD_ROWS - 1)
        done = 0
        while done < len(x):
            block, offset = divmod(first_row + done, _HADAMARD_ROWS)
            part = x[done : done + _HADAMARD_ROWS - offset]
            turned = np.zeros((_HADAMARD_ROWS, x.shape[1]))
            turned[offset : offset + len(part)] = part * self._diagonal(first_row + done, len(part))[:, None]
            parity = np.bitwise_count(self._chosen & np.uint64(block * _HADAMARD_ROWS)) & 1
            total += _signs(parity)[:, None] * _transformed(turned)[low]
            done += len(part)
        return total

    def _diagonal(self, first_row: int, rows: int) -> Matrix:
        """One sign a row: bit ``i mod 128`` of block ``i div 128``."""
        first, skip = divmod(first_row, 8 * _BLOCK)
        bits = np.unpackbits(self._signs.words(first, -(-(skip + rows) // (8 * _BLOCK))).view(np.uint8))
        return _signs(bits[skip : skip + rows])


#: Sketch matrices by the names that users give.
MIXINGS: dict[str, type[SparseSigns] | type[DenseSigns] | type[Hadamard]] = {
    "sparse": SparseSigns,
    "dense": DenseSigns,
    "hadamard": Hadamard,
}


def sketch_matrix(name: str, n: int, k: int, seed: bytes) -> SketchMatrix:
    """The sketch matrix with this name.

    Raises
    ------
    InvalidInput
        For an unknown name, a seed of another length, or an impossible k.
    """
    check_choice("recipe", name, MIXINGS)
    return MIXINGS[name](n, k, seed)


def _signs(bits: NDArray[Any]) -> Matrix:
    """+1 for 0 and -1 for 1."""
    return np.asarray(1.0 - 2.0 * bits, dtype=np.float64)


def _distinct(bits: SharedBits, k: int, order: int) -> NDArray[np.uint64]:
    """The first k distinct values of ``word mod order`` in the order of the stream."""
    found = np.empty(0, dtype=np.uint64)
    blocks = 0
    while len(found) < k:
        more = bits.words(blocks, k).view("<u8") % np.uint64(order)
        blocks += k
        joined = np.concatenate([found, more])
        _, first = np.unique(joined, return_index=True)
        found = joined[np.sort(first)]
    return found[:k]


def _transformed(x: Matrix) -> Matrix:
    """``H x`` by the fast Walsh-Hadamard transform, in place; the number of rows is a power of two."""
    rows, half = len(x), 1
    while half < rows:
        pairs = x.reshape(rows // (2 * half), 2, half * x.shape[1])
        upper = pairs[:, 0] - pairs[:, 1]
        pairs[:, 0] += pairs[:, 1]
        pairs[:, 1] = upper
        half *= 2
    return x
