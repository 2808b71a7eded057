"""Shared mixing: its bits are the published ciphers', its matrix is the same for all, its columns have one norm."""

from __future__ import annotations

import hashlib
from itertools import pairwise

import numpy as np
import pytest

from dpregress.errors import InvalidInput
from dpregress.mechanisms.sketching import (
    MIXINGS,
    DenseSigns,
    Hadamard,
    SharedBits,
    derived_key,
    keystream,
    sketch_matrix,
)

SEED = bytes(range(32))
NAMES = tuple(MIXINGS)


def test_keystream_is_aes_256_in_counter_mode() -> None:
    """NIST SP 800-38A, F.5.5: the cipher text of four blocks, with the plain text taken off."""
    key = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    counter = int("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff", 16)
    plain = bytes.fromhex(
        "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
        "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
    )
    cipher = bytes.fromhex(
        "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5"
        "2b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6"
    )
    assert bytes(keystream(key, counter, 4) ^ np.frombuffer(plain, np.uint8)) == cipher
    # a later block is reached without the ones before it
    assert bytes(keystream(key, counter + 3, 1)) == bytes(keystream(key, counter, 4))[48:]


def test_key_is_hkdf_sha256() -> None:
    """RFC 5869, A.3: no salt, no info, the first 32 bytes."""
    found = derived_key(b"\x0b" * 22, b"").hex()
    assert found == "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"


#: SHA-256 of the first 200 columns of each matrix as int8, for the seed 00 01 .. 1f, n = 1000, k = 96.
DIGESTS = {
    "sparse": "d3587a3023b1846027104dfc9f6149d092b86cf349b0443d3fc89afd243f940a",
    "dense": "264c6b8fd8f16f809a56582b1219dd19d607bc197ce2576d0ee4ec35b3c42112",
    "hadamard": "d7ce6066158dfad45ccd0ec6419f473d4c24bb7f26bd14415e233bb76dbe7c81",
}


@pytest.mark.parametrize("name", NAMES)
def test_matrix_is_the_same_everywhere(name: str) -> None:
    """The bits of a plan made elsewhere, or by another version."""
    matrix = sketch_matrix(name, 1000, 96, SEED).apply(np.eye(200), 0)
    assert hashlib.sha256(matrix.astype(np.int8).tobytes()).hexdigest() == DIGESTS[name]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("k", [1, 5, 8, 61, 300])
def test_columns_have_one_norm(name: str, k: int, seed: int) -> None:
    """Entries 0 and +-1, the stated norm in every column, whatever k."""
    rng = np.random.default_rng(seed)
    mixing = sketch_matrix(name, 40_000, k, rng.bytes(32))
    columns = mixing.apply(np.eye(100), int(rng.integers(39_900)))
    assert set(np.unique(columns)) <= {-1.0, 0.0, 1.0}
    assert np.allclose(np.linalg.norm(columns, axis=0), mixing.column_norm)


@pytest.mark.parametrize("name", NAMES)
def test_chunks_do_not_matter(name: str, seed: int) -> None:
    """Bit for bit: integers add up exactly, in any pieces."""
    rng = np.random.default_rng(seed)
    n = 40_000
    mixing = sketch_matrix(name, n, 40, rng.bytes(32))
    x = np.trunc(rng.normal(size=(n, 2)) * 2**24)
    cuts = [0, *sorted(rng.integers(0, n, size=7).tolist()), n]
    parts = [mixing.apply(x[a:b], a) for a, b in pairwise(cuts)]
    assert np.array_equal(np.sum(parts, axis=0), mixing.apply(x, 0))


@pytest.mark.parametrize("name", NAMES)
def test_inner_products_are_kept(name: str, seed: int) -> None:
    """``E a'B'B b / norm^2 = a'b``, with variance below ``2 |a|^2 |b|^2 / k``.

    The mean of 400 independent values is nearly normal, and may lie 12 of its standard deviations off: below 1e-30 for
    a normal law, which leaves room for the heavier tails of products.
    """
    rng = np.random.default_rng(seed)
    n, k, seeds = 200, 32, 400
    x = rng.normal(size=(n, 2))
    found = []
    for _ in range(seeds):
        mixing = sketch_matrix(name, n, k, rng.bytes(32))
        a, b = (mixing.apply(x, 0) / mixing.column_norm).T
        found.append(float(a @ b))
    size = float(np.linalg.norm(x[:, 0]) * np.linalg.norm(x[:, 1]))
    assert abs(np.mean(found) - x[:, 0] @ x[:, 1]) < 12 * np.sqrt(2 / k / seeds) * size


def test_hadamard_rows_are_those_of_the_matrix(seed: int) -> None:
    """Against the definition: entry (r, i) is the sign of the common bits of i and a row number."""
    rng = np.random.default_rng(seed)
    mixing = Hadamard(300, 512, rng.bytes(32))
    found = mixing.apply(np.eye(300), 0)
    # all 512 rows were drawn, so that the columns are orthogonal
    assert np.allclose(found.T @ found, 512 * np.eye(300))


def test_labels_and_seeds_give_other_bits() -> None:
    words = [SharedBits(seed, label).words(0, 8) for seed in (SEED, SEED[::-1]) for label in ("a", "b")]
    assert len({bytes(each) for each in words}) == 4


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: sketch_matrix("gaussian", 10, 5, SEED), "must be one of"),
        (lambda: sketch_matrix("sparse", 10, 0, SEED), "1 <= k"),
        (lambda: DenseSigns(10, 5, SEED[:31]), "32 bytes"),
        (lambda: Hadamard(10, 17, SEED), "at most 16 rows"),
    ],
)
def test_refusals(make: object, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        make()  # type: ignore[operator]
