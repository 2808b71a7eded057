"""Files over HTTP, from a server in this process on the loopback."""

from __future__ import annotations

import functools
import importlib.util
import io
import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from dpregress.errors import InvalidInput, SourceError
from dpregress.rows.readers import csv, locations
from dpregress.rows.readers.files import read_files
from tests.support import missing, run

N = 5_000


class Whole(SimpleHTTPRequestHandler):
    """Sends files as a whole."""

    def log_message(self, *_: Any) -> None:
        """Keep quiet."""

    def handle(self) -> None:
        with suppress(ConnectionError):  # a client need not hear a file to its end
            super().handle()


class InParts(Whole):
    """Sends the parts of files that are asked for."""

    def send_head(self) -> Any:
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            return super().send_head()
        content = path.read_bytes()
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        first, last = (int(asked[1]), int(asked[2] or len(content) - 1)) if asked else (0, len(content) - 1)
        part = content[first : last + 1]
        self.send_response(206 if asked else 200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(part)))
        self.send_header("ETag", f'"{path.stat().st_mtime_ns}"')
        if asked:
            self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(content)}")
        self.end_headers()
        return io.BytesIO(part)


@pytest.fixture(params=[Whole, InParts], ids=["whole", "in parts"])
def server(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, Path, bool]]:
    """The address of a server, the folder that it serves, and whether it sends parts of files."""
    monkeypatch.setitem(fsspec.config.conf, "http", {"block_size": 10_000})  # so that files here are of many blocks
    monkeypatch.setattr(locations, "_BUFFER", 10_000)
    monkeypatch.setattr(csv, "_BLOCK", 10_000)
    if importlib.util.find_spec("aiohttp") is None:
        missing("aiohttp")
    served = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(request.param, directory=str(tmp_path)))
    thread = threading.Thread(target=served.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{served.server_port}", tmp_path, request.param is InParts
    served.shutdown()
    served.server_close()
    thread.join(60)


def kept(folder: Path, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    table = pa.table({"age": rng.uniform(20, 80, N), "cost": rng.uniform(0, 30_000, N)})
    pacsv.write_csv(table, folder / "rows.csv")
    pq.write_table(table, folder / "rows.parquet", row_group_size=700)
    return table


def test_files_are_read(server: tuple[str, Path, bool], seed: int) -> None:
    address, folder, in_parts = server
    table = kept(folder, seed)
    for name in ("rows.csv", *(["rows.parquet"] if in_parts else [])):
        reader = read_files(f"{address}/{name}?signature=TOKEN")
        assert reader.n == N
        for _ in range(2):
            found = pa.Table.from_batches(reader.batches(["cost"], 999))
            np.testing.assert_array_equal([float(cell) for cell in found["cost"].to_pylist()], table["cost"].to_numpy())
        assert reader.name == f"{address}/{name}?signature=***"


def test_what_cannot_be_read_is_refused(server: tuple[str, Path, bool], seed: int) -> None:
    address, folder, in_parts = server
    kept(folder, seed)
    with pytest.raises(InvalidInput, match=r"no file http://127\.0\.0\.1:\d+/none\.csv\?a=\*\*\*"):
        read_files(f"{address}/none.csv?a=TOKEN")
    if not in_parts:
        with pytest.raises(InvalidInput, match="sends no parts of a file: download it, or use CSV"):
            read_files(f"{address}/rows.parquet")


def test_a_file_that_changes_is_noticed(server: tuple[str, Path, bool], seed: int) -> None:
    address, folder, _ = server
    kept(folder, seed)
    reader = read_files(f"{address}/rows.csv")
    assert reader.n == N
    (folder / "rows.csv").write_text("age,cost\n1,2\n")
    with pytest.raises(SourceError, match="has changed while it was read"):
        list(reader.batches(["cost"], 999))


def test_a_fit_says_no_credential(
    server: tuple[str, Path, bool],
    seed: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    address, folder, _ = server
    kept(folder, seed)
    monkeypatch.chdir(folder)
    (folder / "s.toml").write_text("[age]\nlower = 0\nupper = 110\n[cost]\nlower = 0\nupper = 30000\n")
    url = f"{address}/rows.csv?X-Amz-Signature=TOKEN"
    said = run(
        capsys, "fit", url, "--target", "cost", "--schema", "s.toml", "--epsilon", 1, "--delta", 1e-6, "--out", "o"
    )
    assert (said.code, said.err) == (0, "")
    assert "TOKEN" not in said.out
    for path in (folder / "o").iterdir():
        assert "TOKEN" not in path.read_text()
    assert "rows.csv?X-Amz-Signature=***" in (folder / "o/report.html").read_text()
