"""What the tests of two collectors share: a study, its collectors, and shares of invented people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpregress.collector import ShareReport, Study, device_shares
from dpregress.collector.admission import Admission
from dpregress.collector.drafting import study_from_toml
from dpregress.collector.shares.holder import ShareHolder
from dpregress.collector.shares.lists import ReportList, close_list, load_list
from dpregress.collector.shares.noisy_sums import ShareSum, load_share_sum, release_share_sum
from dpregress.collector.store import Arrival, Outcome, Store, open_store
from dpregress.coordinates import Matrix, Vector
from dpregress.parties.documents import public_half
from tests.collector.support import DESCRIPTION, people, pilot

KEYS = (bytes(range(32)), bytes(range(1, 33)))
NAMES = ("clinic", "university")
HOLDERS = tuple(
    ShareHolder(name, f"https://{name}.example", public_half(key)) for name, key in zip(NAMES, KEYS, strict=True)
)


def two_study(
    folder: Path, seed: int, *, family: str = "binomial", enrolment: str = "open", minimum: int = 3, n: int = 400
) -> Study:
    """A study of two collectors, whose public rows and description stand in the folder."""
    text = DESCRIPTION.format(enrolment=enrolment, minimum=minimum, epsilon=4.0).replace("binomial", family)
    (folder / "two.toml").write_text(text, encoding="utf-8")
    return study_from_toml(folder / "two.toml", pilot(folder, seed, n), HOLDERS)


def words_of(x: Vector, y: float) -> list[object]:
    """A row of :func:`people` as answers."""
    return [float(x[0]), float(x[1]), "yes" if x[2] else "no", "yes" if y else "no"]


def shares(study: Study, seed: int, n: int) -> list[tuple[ShareReport, ShareReport]]:
    """Both shares of invented people's answers."""
    x, y = people(seed, n)
    return [device_shares(words_of(row, float(of)), study) for row, of in zip(x, y, strict=True)]


def exact_sum(study: Study, x: Matrix, y: Vector) -> NDArray[np.int64]:
    """The sum of these people's answers on the grid, without noise."""
    assert study.terms is not None
    rows = [study.terms.row(words_of(row, float(of))) for row, of in zip(x, y, strict=True)]
    return np.sum([study.exact_steps(row[:-1], float(row[-1])) for row in rows], axis=0)


@dataclass
class Two:
    """Both collectors of a study."""

    study: Study
    stores: Sequence[Store]
    folder: Path

    def admit(self, reports: Sequence[ShareReport], holder: int) -> list[Outcome]:
        """What becomes of shares that are sent to one collector."""
        rules = Admission(self.study, holder=holder)
        checked = [rules.check(each.encode()) for each in reports]
        stored = iter(self.stores[holder].add([each for each in checked if isinstance(each, Arrival)]))
        return [each if isinstance(each, Outcome) else next(stored) for each in checked]

    def lists(self) -> list[ReportList]:
        """The closed lists of both."""
        return [self.list_of(holder) for holder in range(2)]

    def list_of(self, holder: int) -> ReportList:
        path = self.folder / f"{holder}.list"
        path.write_text(close_list(self.stores[holder], KEYS[holder]), encoding="utf-8")
        return load_list(path, self.study)

    def sum_of(self, holder: int, other: ReportList) -> ShareSum:
        path = self.folder / f"{holder}.sum"
        path.write_text(release_share_sum(self.stores[holder], KEYS[holder], other), encoding="utf-8")
        return load_share_sum(path, self.study)

    def sums(self) -> list[ShareSum]:
        """The noisy sums of both, after an honest exchange of lists."""
        lists = self.lists()
        return [self.sum_of(holder, lists[1 - holder]) for holder in range(2)]


def filled(two: Two, seed: int, n: int = 5) -> None:
    """Both shares of n invented people arrive."""
    found = shares(two.study, seed, n)
    for holder in range(2):
        two.admit([pair[holder] for pair in found], holder)


def closed_lists(study: Study, location: str, folder: Path, seed: int) -> ReportList:
    """Fill both stores, of which the first is at this location, and close both lists; that of the second one."""
    with open_store(location, study, 0) as first, open_store(folder / "other.db", study, 1) as second:
        two = Two(study, [first, second], folder)
        filled(two, seed)
        return two.lists()[1]


@contextmanager
def two_collectors(study: Study, folder: Path) -> Iterator[Two]:
    """Two stores in files."""
    with ExitStack() as opened:
        stores = [opened.enter_context(open_store(folder / f"{name}.db", study, k)) for k, name in enumerate(NAMES)]
        yield Two(study, stores, folder)
