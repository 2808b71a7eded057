"""Where results go: a place that is taken before anything is charged, and filled in one step.

Beside the place stands a folder ``.NAME.dpregress`` with what is being written. It is locked by the command that
writes, and the system unlocks it when that command ends, however it ends. What a killed command left there is put
right by the next one that takes the place.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import click

from dpregress.display import shown
from dpregress.errors import InvalidInput, OutputError, reason

_NEW, _OLD, _READY, _LOCK = "new", "old", "ready", "lock"
#: How a SQLite file begins.
_SQLITE = b"SQLite format 3\0"
T = TypeVar("T")
_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux


@dataclass(frozen=True)
class Place:
    """A file, or a folder with files of these names, that this command alone may write.

    Parameters
    ----------
    target : Path
        Where the file or the folder stands when it is written.
    names : tuple of str
        The files of a folder; of a single file its own name.
    staging : Path
        The locked folder.
    single : bool
    private : bool
        Only their owner may read the files.
    """

    target: Path
    names: tuple[str, ...]
    staging: Path
    single: bool
    private: bool

    def write(self, *contents: str | bytes) -> None:
        """Write a text, or bytes, for each name, then put all in place in one step.

        Raises
        ------
        OutputError
            When the disk refuses. What was there before is there still.
        """
        with self._filled() as new:
            for name, content in zip(self.names, contents, strict=True):
                (new / name).touch(mode=0o600 if self.private else 0o666)
                data = content if isinstance(content, bytes) else content.encode("utf-8", errors="replace")
                (new / name).write_bytes(data)

    def fill(self, write: Callable[[Path], T]) -> T:
        """Let a function make the single file, then put it in place in one step; what the function returns.

        Raises
        ------
        OutputError
            As :meth:`write`.
        """
        with self._filled() as new:
            return write(new / self.target.name)

    @contextmanager
    def _filled(self) -> Iterator[Path]:
        """A new folder, whose files are put in place when the block ends."""
        new = self.staging / _NEW
        try:
            new.mkdir(mode=0o700 if self.private else 0o777)
            yield new
            for name in self.names:
                _sync(new / name)
            self._put(new)
        except (OSError, ValueError) as error:
            raise OutputError(
                f"cannot write to {self.target}: {reason(error)}; if a budget was charged, it stays charged"
            ) from error

    def _put(self, new: Path) -> None:
        if self.single:
            (new / self.target.name).replace(self.target)
        elif not self.target.exists():
            new.rename(self.target)
        elif not (self._alone() and _exchanged(new, self.target)):
            self._move(new)

    def _alone(self) -> bool:
        """Whether the folder holds nothing else, and nobody works in it who would be left in the old one."""
        within = Path.cwd().is_relative_to(self.target)
        return self.staging.parent != self.target and not within and set(os.listdir(self.target)) <= set(self.names)

    def _move(self, new: Path) -> None:
        """Replace the files one by one, the old ones first: old and new never stand side by side."""
        old = self.staging / _OLD
        old.mkdir()
        for name in self.names:
            if (self.target / name).exists():
                (self.target / name).rename(old / name)
        new.rename(self.staging / _READY)
        self._finish()

    def _finish(self) -> None:
        self.target.mkdir(exist_ok=True)
        for path in sorted((self.staging / _READY).iterdir()):
            path.rename(self.target / path.name)

    def restore(self) -> None:
        """Bring what a killed command began to its end, or back to where it was."""
        if (self.staging / _READY).is_dir():
            self._finish()
        elif (self.staging / _OLD).is_dir():
            for path in (self.staging / _OLD).iterdir():
                path.rename(self.target / path.name)
        _emptied(self.staging)


@contextmanager
def taken(out: Path, names: Sequence[str] = (), *, overwrite: bool, private: bool = False) -> Iterator[Place]:
    """Take a place for this command alone, until it ends.

    Parameters
    ----------
    out : Path
        A folder, or without ``names`` a file.
    names : sequence of str
        The files that will be written in the folder.
    overwrite : bool
        Whether results that are there may be replaced.
    private : bool
        Only their owner may read the files, and enter folders that are made for them.

    Raises
    ------
    InvalidInput
        For a place that cannot be written to, holds results already, or is taken by another command.
    """
    made: list[Path] = []
    try:
        with _refused(out):
            target = Path(os.path.realpath(out))  # of a/b/../c only a/c is made
            home = _home(target, bool(names))
            made = _make(home, mode=0o700 if private else 0o777)
        with _locked(home / f".{target.name}.dpregress", out) as staging:
            place = Place(target, tuple(names) or (target.name,), staging, not names, private)
            with _refused(out):
                place.restore()
                _check(place, out, overwrite=overwrite)
            yield place
    finally:
        with suppress(OSError):  # what is not empty stays
            for parent in made:
                parent.rmdir()


def write_one(path: Path, text: str, *, private: bool = False) -> None:
    """Write a file whole or not at all, in place of what is there."""
    with taken(path, overwrite=True, private=private) as place:
        place.write(text)


@contextmanager
def _refused(out: Path) -> Iterator[None]:
    try:
        yield
    except InvalidInput:
        raise
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot write to {shown(out)}: {reason(error)}; choose another --out") from error


def _home(target: Path, folder: bool) -> Path:
    """Where the staging folder stands: beside the place, or in a folder that cannot be moved."""
    if folder and target.is_dir() and (target.is_mount() or not os.access(target.parent, os.W_OK | os.X_OK)):
        return target
    return target.parent


def _check(place: Place, out: Path, *, overwrite: bool) -> None:
    """Refuse what would be lost, or cannot be replaced."""
    if place.target.is_symlink():  # no link is left in a resolved path but one that leads back to itself
        raise InvalidInput(f"--out {shown(out)} is a link that leads nowhere: choose another --out")
    if not place.single and place.target.exists() and not place.target.is_dir():
        raise InvalidInput(f"--out {shown(out)} is a file: name a folder")
    for name in place.names:
        path, called = (place.target, out) if place.single else (place.target / name, out / name)
        if path.is_dir():
            raise InvalidInput(f"{shown(called)} is a folder: choose another --out")
        if path.exists() and not path.is_file():  # a device or a pipe, which would be gone
            raise InvalidInput(f"{shown(called)} is not a regular file: choose another --out")
        if (path.exists() or path.is_symlink()) and not overwrite:
            raise InvalidInput(f"{shown(called)} already exists: choose another --out, or add --overwrite")
        if path.is_file() and _kept(path, own=place.single):
            raise InvalidInput(f"{shown(called)} is a database, or read by this command: choose another --out")
    if place.target.is_dir() and not os.access(place.target, os.W_OK | os.X_OK):
        raise InvalidInput(f"cannot write to {shown(out)}: Permission denied; choose another --out")


def _kept(path: Path, *, own: bool) -> bool:
    """Whether a file is never replaced: a SQLite file, or one that the running command was given to read.

    Parameters
    ----------
    path : Path
        An existing file.
    own : bool
        Whether the command was given its name as the place for results, too.
    """
    with path.open("rb") as file:
        if file.read(len(_SQLITE)) == _SQLITE:
            return True
    context = click.get_current_context(silent=True)
    values = [] if context is None else list(context.params.values())
    given = [each for value in values for each in (value if isinstance(value, tuple | list) else [value])]
    return sum(_same(value, path) for value in given) > int(own)


def _same(value: object, path: Path) -> bool:
    """Whether a parameter of a command names this file."""
    try:
        return isinstance(value, str | Path) and Path(value).exists() and Path(value).samefile(path)
    except (OSError, ValueError):
        return False


@contextmanager
def _locked(staging: Path, out: Path) -> Iterator[Path]:
    """The staging folder, locked until it is removed; a command that finds it locked is refused."""
    with _refused(out):
        handle = _lock(staging)
        if handle is None:
            raise InvalidInput(f"another command is writing to {shown(out)}: wait for it, or choose another --out")
    try:
        yield staging
    finally:
        with suppress(OSError):
            _emptied(staging)
            (staging / _LOCK).unlink()
            staging.rmdir()
        os.close(handle)


def _lock(staging: Path) -> int | None:
    """Make the folder if it is not there, and lock it; None where another command has."""
    while True:
        with suppress(FileExistsError):
            staging.mkdir(mode=0o700)
        try:
            _check_own(staging)
            handle = os.open(staging / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except FileNotFoundError:  # its owner has just removed it
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(handle), os.stat(staging / _LOCK)):
                return handle
        except BlockingIOError:
            os.close(handle)
            return None
        except FileNotFoundError:
            pass
        except OSError:
            os.close(handle)
            raise
        os.close(handle)


def _check_own(staging: Path) -> None:
    """Refuse what somebody else put in the place of the staging folder: its files would become results."""
    found = staging.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise ValueError(f"{staging.name} beside it is not a folder that you own")


def _emptied(folder: Path) -> None:
    """Remove what is staged. That new files are ready stays known until the old ones are gone."""
    for name in (_OLD, _NEW, _READY):
        if (folder / name).exists():
            shutil.rmtree(folder / name)


def _exchanged(one: Path, other: Path) -> bool:
    """Whether two folders were swapped, which Linux does in one step."""
    try:
        swap = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError):
        return False
    shutil.copymode(other, one)
    return bool(swap(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0)


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _make(folder: Path, *, mode: int) -> list[Path]:
    """Make a folder and its parents; those that were made, innermost first."""
    missing = []
    at = folder
    while not at.exists():
        missing.append(at)
        at = at.parent
    folder.mkdir(mode=mode, parents=True, exist_ok=True)
    return missing
