"""The discrete Gaussian on a given stream of bytes, as docs/collector/wire.md writes it: slow, exact, comparable.

Source: Canonne, Kamath, Steinke (2020), Algorithms 1 to 3.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable


class Stream:
    """Bytes that two implementations can share: block j is the SHA-256 of a label and j."""

    def __init__(self, label: str) -> None:
        self.label, self.block, self.held, self.consumed = label.encode("ascii"), 0, b"", 0

    def __call__(self, count: int) -> bytes:
        while len(self.held) < count:
            self.held += hashlib.sha256(self.label + self.block.to_bytes(4, "little")).digest()
            self.block += 1
        taken, self.held = self.held[:count], self.held[count:]
        self.consumed += count
        return taken


def below(m: int, take: Callable[[int], bytes]) -> int:
    bits = (m - 1).bit_length()
    if bits == 0:
        return 0
    while True:
        found = int.from_bytes(take((bits + 7) // 8), "little") & ((1 << bits) - 1)
        if found < m:
            return found


def bernoulli(n: int, d: int, take: Callable[[int], bytes]) -> bool:
    return below(d, take) < n


def bernoulli_exp1(n: int, d: int, take: Callable[[int], bytes]) -> bool:
    k = 1
    while bernoulli(n, d * k, take):
        k += 1
    return k % 2 == 1


def bernoulli_exp(n: int, d: int, take: Callable[[int], bytes]) -> bool:
    while n > d:
        if not bernoulli_exp1(1, 1, take):
            return False
        n -= d
    return bernoulli_exp1(n, d, take)


def laplace(t: int, take: Callable[[int], bytes]) -> int:
    while True:
        u = below(t, take)
        if not bernoulli_exp(u, t, take):
            continue
        v = 0
        while bernoulli_exp1(1, 1, take):
            v += 1
        x = u + t * v
        negative = below(2, take) == 1
        if not (negative and x == 0):
            return -x if negative else x


def gaussian(s: int, take: Callable[[int], bytes] = os.urandom) -> int:
    """One draw of the discrete Gaussian of scale s on the integers."""
    t = s + 1
    while True:
        y = laplace(t, take)
        if bernoulli_exp((abs(y) * t - s * s) ** 2, 2 * s * s * t * t, take):
            return y


def known_answers() -> list[dict[str, object]]:
    """The entries of ``tests/collector/vectors/discrete_gaussian.json``."""
    found = []
    for scale in (1, 2, 3, 10, 1000, 2**20 + 1, 2**23, 2**24, 2**27):
        label = f"dpregress/discrete-gaussian/{scale}/"
        stream = Stream(label)
        draws = [gaussian(scale, stream) for _ in range(25)]
        found.append({"label": label, "scale": scale, "draws": draws, "consumed": stream.consumed})
    return found
