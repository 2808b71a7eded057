"""What the reports of a store hold after their header, and the integers that they stand for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpregress.collector.shares.splitting import SHARE_SEED_BYTES, WORD, seed_words
from dpregress.collector.study import Study
from dpregress.collector.wire import ANSWER, MAGIC, SHARE_MAGIC
from dpregress.errors import InvalidInput


@dataclass(frozen=True)
class Payload(ABC):
    """The part of a report that is summed.

    Parameters
    ----------
    size : int
        p', the number of integers.
    """

    size: int
    magic: ClassVar[bytes]

    @property
    @abstractmethod
    def length(self) -> int:
        """Bytes."""

    @abstractmethod
    def integers(self, payloads: Sequence[bytes]) -> NDArray[np.int64]:
        """The integers of several reports, of shape (k, p'); those of shares are summed modulo 2^64."""


class AnswerPayload(Payload):
    """Noisy answers as 32-bit integers."""

    magic: ClassVar[bytes] = MAGIC

    @property
    def length(self) -> int:
        return ANSWER.itemsize * self.size

    def integers(self, payloads: Sequence[bytes]) -> NDArray[np.int64]:
        return np.frombuffer(b"".join(payloads), ANSWER).reshape(-1, self.size).astype(np.int64)


class SeedPayload(Payload):
    """Shares that are seeds."""

    magic: ClassVar[bytes] = SHARE_MAGIC

    @property
    def length(self) -> int:
        return SHARE_SEED_BYTES

    def integers(self, payloads: Sequence[bytes]) -> NDArray[np.int64]:
        words = [seed_words(each, self.size) for each in payloads]
        return np.array(words, dtype=np.uint64).reshape(-1, self.size).astype(np.int64)


class WordPayload(Payload):
    """Shares that are 64-bit words."""

    magic: ClassVar[bytes] = SHARE_MAGIC

    @property
    def length(self) -> int:
        return WORD.itemsize * self.size

    def integers(self, payloads: Sequence[bytes]) -> NDArray[np.int64]:
        return np.frombuffer(b"".join(payloads), WORD).reshape(-1, self.size).astype(np.int64)


_SHARES: tuple[type[Payload], ...] = (SeedPayload, WordPayload)


def payload_of(study: Study, holder: int | None) -> Payload:
    """What reports of a study hold: noisy answers, or the shares of one of its two collectors.

    Parameters
    ----------
    study : Study
    holder : int or None
        The place of the collector in ``study.holders``; None where devices add the noise.

    Raises
    ------
    InvalidInput
        For a holder of a study without two collectors, and none of a study with them.
    """
    if holder is None:
        if study.holders:
            names = " and ".join(each.name for each in study.holders)
            raise InvalidInput(f"this study has the collectors {names}: name the one that this is by its --key")
        return AnswerPayload(study.query.size)
    if not 0 <= holder < len(study.holders):
        raise InvalidInput("the devices of this study add the noise: it has one collector, without a --key")
    return _SHARES[holder](study.query.size)
