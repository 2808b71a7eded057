"""Where files are, on this machine or at a URL, and whether they are still what they were."""

from __future__ import annotations

import glob
import os
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import unquote

from dpregress.display import shown
from dpregress.errors import InvalidInput, SourceError
from dpregress.rows.readers.failures import planning, raise_alone, unreached


@dataclass(frozen=True)
class URL:
    """A file at a URL for fsspec. As text it shows no credentials; ``address`` has them."""

    address: str

    def __str__(self) -> str:
        return shown(self.address)

    def __repr__(self) -> str:
        return f"URL({str(self)!r})"


#: A file on this machine, or elsewhere.
Location = Path | URL
#: What storages call the properties of a file that change with what it holds, in small letters without - and _.
_SUMS = ("checksum", "contentmd5", "crc32c", "digest", "etag", "generation", "md5hash", "versionid")
_BUFFER = 1 << 20
_TIMES = ("created", "lastmodified", "modified", "mtime", "size", "updated")
#: Names in a folder that begin with these are no data: hidden files, _SUCCESS, _metadata.
_SKIPPED = (".", "_")
#: The folder of a missing value, as Hive, Spark and Arrow name it.
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def paths_of(source: Any) -> tuple[Location, ...]:
    """The files that a path, a folder, a pattern, a URL or a list of these stands for, each in order of their names."""
    if not isinstance(source, list | tuple):
        return _matching(source)
    found = tuple(path for each in source for path in _matching(each))
    if not found:
        raise InvalidInput("the list of files is empty: name one")
    return found


def _matching(source: Any) -> tuple[Location, ...]:
    if isinstance(source, URL):
        return (source,)
    if not isinstance(source, str | Path):  # of an array only its type may be named, not its cells
        raise InvalidInput(f"{type(source).__name__} is neither a path nor a table: give a file, or a data frame")
    if "://" in str(source):
        return _remote(str(source))
    with planning(f"cannot read {shown(source)}"):
        if Path(source).is_file():
            return (Path(source),)
        if Path(source).is_dir():
            return _inside(Path(source))
        found = tuple(Path(name) for name in sorted(glob.glob(str(source), recursive=True)) if Path(name).is_file())
    if not found or not glob.has_magic(str(source)):
        raise InvalidInput(f"no file {shown(source)}: check the path")
    return found


def _inside(folder: Path) -> tuple[Location, ...]:
    """All files of a folder and of the folders in it, in order; names that begin with a dot or _ are skipped."""
    if (folder / "_delta_log").is_dir():
        raise InvalidInput(f"{folder} is a Delta table, some of whose files may be deleted rows: read it with a query")
    found = [path.relative_to(folder) for path in folder.rglob("*") if not path.is_dir() or path.is_symlink()]
    kept = sorted(path for path in found if not any(part.startswith(_SKIPPED) for part in path.parts))
    odd = next((path for path in kept if not (folder / path).is_file()), None)
    if odd is not None:  # its rows would be left out without a word
        raise InvalidInput(f"{folder / odd} is no file: folders with links to folders, or to nothing, are not read")
    if not kept:
        raise InvalidInput(f"folder {folder} holds no files: name another, or the files themselves")
    return tuple(folder / path for path in kept)


def partitions_of(source: Any, paths: Sequence[Location]) -> dict[Location, dict[str, str | None]]:
    """What the names of folders such as ``year=2020`` say of each file, where the source is one folder.

    The values are cells of rows, and stay text as those of a CSV file do: none has a say in how another is read.
    """
    if not isinstance(source, str | Path) or not Path(source).is_dir():
        return {path: {} for path in paths}
    folders = {path: path.relative_to(source).parts[:-1] for path in paths if isinstance(path, Path)}
    return {path: dict(_partition(part) for part in parts if "=" in part) for path, parts in folders.items()}


def _partition(name: str) -> tuple[str, str | None]:
    column, _, value = name.partition("=")
    return unquote(column), None if value == _NO_VALUE else unquote(value)


def _remote(url: str) -> tuple[Location, ...]:
    try:
        import fsspec
        from fsspec.implementations.local import LocalFileSystem
    except ImportError as error:
        raise InvalidInput("fsspec is not installed: pip install 'dpregress[remote]'") from error
    with _asking(shown(url)):
        files, path = fsspec.core.url_to_fs(url)
        # a query may hold a question mark for nothing but itself, so what is a file is not a pattern
        magic = glob.has_magic(path) and not files.isfile(path)
        found = sorted(files.glob(path)) if magic else [path] if files.isfile(path) else []
        local = isinstance(files, LocalFileSystem)
        urls = () if local else tuple(URL(_address(url, files, each) if magic else url) for each in found)
    if local:
        return tuple(part for each in found for part in _matching(Path(each))) or _matching(Path(path))
    if not urls:
        raise InvalidInput(f"no file {shown(url)}: check the URL")
    return urls


def _address(pattern: str, files: Any, path: str) -> str:
    """The URL of a file that matches a pattern; not every storage keeps the host in its paths, as FTP does not."""
    import fsspec

    address = str(files.unstrip_protocol(path))
    if fsspec.core.url_to_fs(address) == (files, path):
        return address
    scheme, _, rest = pattern.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}/{path.lstrip('/')}"


@contextmanager
def _asking(name: str) -> Iterator[None]:
    """Turn what a storage says, which may quote credentials, into one line."""
    try:
        yield
    except Exception as error:  # of whatever storage this is; no row has been read
        raise_alone(InvalidInput(f"cannot read {name}: {_known(error)}"))


def _known(error: Exception) -> str:
    """Why a storage cannot be asked; a package that is missing is named."""
    absent = error.__cause__ or error
    return f"{absent.name} is not installed" if isinstance(absent, ImportError) and absent.name else unreached(error)


def opened(path: Location, *, in_parts: bool = False) -> BinaryIO:
    """A file to be read from its beginning to its end, or any part of it."""
    if isinstance(path, Path):
        return path.open("rb")
    import fsspec

    files, place = fsspec.core.url_to_fs(path.address)
    # a web server need not send parts of a file; of size 0 they are asked for as one stream
    streamed = {"block_size": 0} if not in_parts and path.address.startswith(("http://", "https://")) else {}
    # files of fsspec lack much of what a file can do, such as to read a line of at most so many bytes
    return BufferedReader(cast(RawIOBase, files.open(place, "rb", **streamed)), _BUFFER)


@dataclass(frozen=True)
class FileState:
    """Which file there is at a place, and what tells whether it has been written anew.

    Parameters
    ----------
    file : hashable
        The same for all names of one file: device and number of a file on this machine, else its URL.
    version : hashable
        Size and time of the last change, or what a storage says of them.
    """

    file: Hashable
    version: Hashable

    def elsewhere(self) -> FileState:
        """The same for other machines, which number devices in their own ways: only the version is compared."""
        return FileState(None, self.version)

    @classmethod
    def of(cls, path: Location) -> FileState:
        """What is there now.

        Raises
        ------
        InvalidInput
            When there is no such file any more, or its storage cannot be asked.
        """
        with _asking(str(path)):
            return cls._local(path) if isinstance(path, Path) else cls._remote(path.address)

    @classmethod
    def _local(cls, path: Path) -> FileState:
        found = path.stat()
        # some file systems do not number their files
        file = (found.st_dev, found.st_ino) if found.st_ino else os.path.realpath(path)
        return cls(file, (found.st_size, found.st_mtime_ns))

    @classmethod
    def _remote(cls, url: str) -> FileState:
        import fsspec

        files, path = fsspec.core.url_to_fs(url)
        files.invalidate_cache()  # it remembers what it was told before
        told = {name.lower().replace("_", "").replace("-", ""): value for name, value in files.info(path).items()}
        version = tuple((name, str(told[name])) for name in (*_SUMS, *_TIMES) if name in told)
        return cls(files.unstrip_protocol(path), version)


@contextmanager
def unchanged(path: Location, state: FileState) -> Iterator[None]:
    """Fail where a file is not in this state any more, or leaves it while it is read.

    Raises
    ------
    SourceError
    """
    _compare(path, state)
    try:
        yield
    except Exception:
        _compare(path, state)  # what went wrong is rather this
        raise
    _compare(path, state)


def _compare(path: Location, state: FileState) -> None:
    try:
        found = FileState.of(path)
        same = found.version == state.version and state.file in (None, found.file)
    except InvalidInput:
        same = False
    if not same:
        raise_alone(
            SourceError(f"{path} has changed while it was read; fit a copy of it that nobody writes to, once more")
        )


def states_of(paths: Sequence[Location]) -> dict[Location, FileState]:
    """The state of each file.

    Raises
    ------
    InvalidInput
        For a file that is there twice, by whatever names: its rows would count twice.
    """
    states: dict[Location, FileState] = {}
    seen: dict[Hashable, Location] = {}
    for path in paths:
        states[path] = FileState.of(path)
        if states[path].file in seen:
            other = seen[states[path].file]
            raise InvalidInput(f"a file is named twice, as {other} and as {path}: its rows would count twice")
        seen[states[path].file] = path
    return states
