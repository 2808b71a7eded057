"""Reports as bytes: one user's answer on its way to the server."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dpregress.collector.study import Study
from dpregress.errors import InvalidInput

#: How a report begins, and a share of one.
MAGIC, SHARE_MAGIC = b"DPR1", b"DPS1"
_TASK, _ID = 32, 16
TOKEN_BYTES = 32
_TOKEN_LABEL = b"dpregress/collector-token/1/"
_ENDS = (0, *accumulate([len(MAGIC), _TASK, _ID, TOKEN_BYTES]))
#: Bytes before the answer.
HEADER = _ENDS[-1]
#: The numbers of an answer.
ANSWER = np.dtype("<i4")


def split_header(data: bytes) -> tuple[bytes, bytes, bytes, bytes]:
    """The version, the study's hash, the id and the token of a report."""
    magic, task, name, token = (data[start:end] for start, end in pairwise(_ENDS))
    return magic, task, name, token


@dataclass(frozen=True, eq=False)
class Report:
    """An answer under a random name: ``DPR1``, the study's digest, an id, a token, little-endian 32-bit integers.

    Parameters
    ----------
    task : bytes
        Digest of the study, 32 bytes.
    id : bytes
        16 random bytes: a report that is sent again keeps them, and counts once.
    token : bytes
        32 bytes that say that the user may answer, or zeros where nobody asks.
    answer : ndarray of int32
    """

    task: bytes
    id: bytes
    token: bytes
    answer: NDArray[np.int32]

    def __post_init__(self) -> None:
        lengths = (len(self.task), len(self.id), len(self.token))
        if lengths != (_TASK, _ID, TOKEN_BYTES) or self.answer.ndim != 1 or self.answer.dtype != np.int32:
            raise InvalidInput(
                f"a report needs a task, id and token of {_TASK}, {_ID} and {TOKEN_BYTES} bytes, and an answer"
            )

    def encode(self) -> bytes:
        """The report as bytes."""
        return b"".join([MAGIC, self.task, self.id, self.token, self.answer.astype(ANSWER).tobytes()])

    @classmethod
    def decode(cls, data: bytes, study: Study) -> Self:
        """Read back what :meth:`encode` wrote, for one study.

        Raises
        ------
        InvalidInput
            For bytes of another length or version, a report of another study, and an answer that no honest device
            would send.
        """
        length = HEADER + ANSWER.itemsize * study.query.size
        if len(data) != length:
            raise InvalidInput(f"a report of this study has {length} bytes, not {len(data)}")
        magic, task, name, token = split_header(data)
        if magic != MAGIC:
            raise InvalidInput("these bytes are not a report of this version")
        if task != study.digest:
            raise InvalidInput("this report answers another study")
        answer = np.frombuffer(data, dtype=ANSWER, offset=HEADER).astype(np.int32)
        if not study.admits(answer):
            raise InvalidInput("no honest device sends an answer of this size")
        return cls(task, name, token, answer)


@dataclass(frozen=True)
class ShareReport:
    """One share of an answer: ``DPS1``, the study's digest, an id, a token, and a seed or 64-bit words.

    Parameters
    ----------
    task : bytes
        Digest of the study, 32 bytes.
    id : bytes
        16 random bytes; both shares of an answer have the same.
    token : bytes
        32 bytes, of one collector alone (:func:`token_for`).
    payload : bytes
        A share modulo 2^64.
    """

    task: bytes
    id: bytes
    token: bytes
    payload: bytes

    def __post_init__(self) -> None:
        if (len(self.task), len(self.id), len(self.token)) != (_TASK, _ID, TOKEN_BYTES):
            raise InvalidInput(f"a share needs a task, id and token of {_TASK}, {_ID} and {TOKEN_BYTES} bytes")

    def encode(self) -> bytes:
        """The share as bytes."""
        return b"".join([SHARE_MAGIC, self.task, self.id, self.token, self.payload])


def token_for(token: bytes, holder: int) -> bytes:
    """What a device sends to one of two collectors in place of the token of its invitation.

    Neither collector can use it at the other. Zeros, of a study with open enrolment, stay zeros.
    """
    if token == bytes(TOKEN_BYTES):
        return token
    return hashlib.sha256(_TOKEN_LABEL + bytes([holder]) + token).digest()
