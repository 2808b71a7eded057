"""Where files are, on this machine or at a URL, and whether they are still what they were."""

from __future__ import annotations

import glob
import os
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import unquote

from dpregress.errors import InvalidInput
from dpregress.rows.readers import first_line

#: A file on this machine, or a URL for fsspec.
Location = Path | str
#: What storages call the properties of a file that change with what it holds, in small letters without - and _.
_SUMS = ("checksum", "contentmd5", "crc32c", "digest", "etag", "generation", "md5hash", "versionid")
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
    if not isinstance(source, str | Path):  # of an array only its type may be named, not its cells
        raise InvalidInput(f"{type(source).__name__} is neither a path nor a table: give a file, or a data frame")
    if "://" in str(source):
        return _remote(str(source))
    try:
        if Path(source).is_file():
            return (Path(source),)
        if Path(source).is_dir():
            return _inside(Path(source))
        found = tuple(Path(name) for name in sorted(glob.glob(str(source), recursive=True)) if Path(name).is_file())
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot read {source}: {error}") from error
    if not found or not glob.has_magic(str(source)):
        raise InvalidInput(f"no file {source}: check the path")
    return found


def _inside(folder: Path) -> tuple[Location, ...]:
    """All files of a folder and of the folders in it, in order; names that begin with a dot or _ are skipped."""
    if (folder / "_delta_log").is_dir():
        raise InvalidInput(f"{folder} is a Delta table, some of whose files may be deleted rows: read it with a query")
    found = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    kept = sorted(path for path in found if not any(part.startswith(_SKIPPED) for part in path.parts))
    if not kept:
        raise InvalidInput(f"folder {folder} holds no files: name another, or the files themselves")
    return tuple(folder / path for path in kept)


def partitions_of(source: Any, paths: Sequence[Location]) -> dict[Location, dict[str, str | None]]:
    """What the names of folders such as ``year=2020`` say of each file, where the source is one folder.

    The values are cells of rows, and stay text as those of a CSV file do: none has a say in how another is read.
    """
    if not isinstance(source, str | Path) or not Path(source).is_dir():
        return {path: {} for path in paths}
    folders = {path: Path(path).relative_to(source).parts[:-1] for path in paths}
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
    try:
        files, path = fsspec.core.url_to_fs(url)
        found = sorted(files.glob(path)) if glob.has_magic(path) else [path] if files.isfile(path) else []
        if isinstance(files, LocalFileSystem):
            return tuple(part for each in found for part in _matching(Path(each))) or _matching(Path(path))
        urls = tuple(files.unstrip_protocol(each) for each in found)
    except InvalidInput:
        raise
    except Exception as error:  # of whatever storage this is; no row has been read
        raise InvalidInput(f"cannot read {url}: {first_line(error)}") from error
    if not urls:
        raise InvalidInput(f"no file {url}: check the URL")
    return urls


def opened(path: Location) -> BinaryIO:
    """A file to be read from its beginning."""
    if isinstance(path, Path):
        return path.open("rb")
    import fsspec

    return cast(BinaryIO, fsspec.open(path, "rb").open())


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

    @classmethod
    def of(cls, path: Location) -> FileState:
        """What is there now.

        Raises
        ------
        InvalidInput
            When there is no such file any more, or its storage cannot be asked.
        """
        try:
            return cls._local(path) if isinstance(path, Path) else cls._remote(path)
        except Exception as error:  # of whatever storage this is
            raise InvalidInput(f"cannot read {path}: {first_line(error)}") from error

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
