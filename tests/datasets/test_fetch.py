"""Tables from their original sources: checked, kept whole, and asked about once."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpregress.datasets import DATASETS, agreed, dataset_named, fetch, fetch_dataset, folder_table, has_table
from dpregress.errors import InvalidInput
from tests.support import data_file, run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DPREGRESS_DATA", str(tmp_path / "tables"))
    return tmp_path / "tables"


def zipped(name: str, text: str) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr(name, text)
    return sink.getvalue()


#: Files of the layout of the sources, with invented rows, and what is read from them.
FILES: dict[str, tuple[dict[str, bytes], dict[str, list[object]]]] = {
    "banknote": ({"banknote": b"1.5,2,3,-4,0\n-1,2.25,3,4,1\n"}, {"variance": [1.5, -1.0], "class": [0, 1]}),
    "wine_quality_white": (
        {"wine": ('"fixed acidity";' + ";".join(["x"] * 11) + "\n" + ";".join(["7"] * 12) + "\n").encode()},
        {"fixed acidity": [7], "quality": [7]},
    ),
    "skin_segmentation": ({"Skin": b"74\t85\t123\t1\n73\t84\t122\t2\n"}, {"B": [74, 73], "class": [1, 2]}),
    "bank_marketing": (
        {"bank": zipped("bank-full.csv", ";".join(["h"] * 17) + "\n30;" + ";".join(['"no"'] * 16) + "\n")},
        {"age": [30], "y": ["no"]},
    ),
    "bike_sharing": (
        {"Bike": zipped("hour.csv", ",".join(["h"] * 17) + "\n1,2011-01-01," + ",".join(["1"] * 15) + "\n")},
        {"instant": [1], "dteday": ["2011-01-01"]},
    ),
    "adult": (
        {
            "adult.data": b"39, State-gov" + b", 1" * 12 + b", <=50K\n\n",
            "adult.test": b"|1x3 Cross validator\n25, Private" + b", 2" * 12 + b", >50K.\n",
        },
        {"age": [39, 25], "workclass": ["State-gov", "Private"], "income": ["<=50K", ">50K"]},
    ),
}


def getter(name: str):  # type: ignore[no-untyped-def]
    files = FILES[name][0]

    def get(url: str) -> bytes:
        assert url.startswith("https://archive.ics.uci.edu/")
        return next(content for part, content in files.items() if part in url)

    return get


@pytest.mark.parametrize("name", FILES)
def test_files_of_the_source_become_tables(name: str, folder: Path) -> None:
    dataset, get = dataset_named(name), getter(name)
    table = pa.concat_tables([fetch._parsed(dataset, get(url)) for url in dataset.urls])
    known = replace(dataset, checksum=fetch.checksum_of(table))
    assert fetch_dataset(known, get) == folder / f"{name}.parquet"
    found = folder_table(name)
    assert tuple(found.column_names) == dataset.columns
    for column, cells in FILES[name][1].items():
        assert found[column].to_pylist() == cells


def test_other_rows_than_the_known_are_not_kept(folder: Path) -> None:
    with pytest.raises(InvalidInput, match="not the known ones"):
        fetch_dataset(dataset_named("banknote"), getter("banknote"))
    assert not has_table("banknote")
    assert not folder.exists()


def test_an_archive_without_the_file_is_refused(folder: Path) -> None:
    with pytest.raises(InvalidInput, match=r"does not hold bank-full.csv"):
        fetch_dataset(dataset_named("bank_marketing"), lambda _: b"no archive")
    assert not folder.exists()


def test_bytes_that_are_no_text_are_refused(folder: Path) -> None:
    name = next(each.name for each in DATASETS.values() if each.urls and not each.member)
    with pytest.raises(InvalidInput, match="the file of the source is no such table"):
        fetch_dataset(DATASETS[name], lambda _: b"\xff\xfe\x00\x81")
    assert not folder.exists()


def test_the_licence_is_shown_and_asked_once(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table is not kept, because these rows are not the known ones; the answer is."""
    monkeypatch.setattr(fetch.fetch_dataset, "__defaults__", (getter("banknote"),))
    refused = run(capsys, "datasets", "fetch", "banknote")  # no terminal, no answer
    assert refused.code != 0
    assert "CC BY 4.0" in refused.out
    assert not agreed(DATASETS["banknote"])
    first = run(capsys, "datasets", "fetch", "banknote", "--yes")
    assert "CC BY 4.0" in first.out
    assert "not the known ones" in first.err
    assert json.loads((folder / "licences.json").read_text())["banknote"]
    second = run(capsys, "datasets", "fetch", "banknote")
    assert "CC BY" not in second.out
    assert "not the known ones" in second.err


def test_a_failed_download_records_no_agreement(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def offline(*_: object, **__: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr(fetch, "urlopen", offline)
    done = run(capsys, "datasets", "fetch", "banknote", "--yes")
    assert done.code == 2
    assert DATASETS["banknote"].urls[0] in done.err
    assert not agreed(DATASETS["banknote"])
    assert not folder.exists()


def test_a_file_in_place_of_the_folder_says_the_mend(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("kept")
    monkeypatch.setenv("DPREGRESS_DATA", str(tmp_path / "file"))
    done = run(capsys, "datasets", "list")
    assert (done.code, done.err) == (2, "error: DPREGRESS_DATA names a file: set it to a folder of tables\n")
    below = tmp_path / "file" / "sub"
    done = run(capsys, "experiment", "run", "wu-3", "--quick", "--out", below)
    assert (done.code, done.err) == (
        2, f"error: --out is a folder; {tmp_path / 'file'} is a file: name a folder\n"
    )  # fmt: skip


def test_commands_without_a_budget_mention_none(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr("dpregress.cli.datasets.print_table", full)
    done = run(capsys, "datasets", "list")
    assert (done.code, done.err) == (2, "error: No space left on device\n")


def test_a_damaged_file_of_answers_asks_again(folder: Path) -> None:
    folder.mkdir(parents=True)
    for damaged in ("3", "[]", '{"banknote": 3}', "{", '{"banknote": null}'):
        (folder / "licences.json").write_text(damaged)
        assert not agreed(DATASETS["banknote"])
    fetch.record_agreement(DATASETS["banknote"])
    assert agreed(DATASETS["banknote"])
    assert not list(folder.glob("*.part"))


def test_a_table_without_a_source_says_where_to_put_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert not folder.exists()
    done = run(capsys, "datasets", "fetch", "susy", "--yes")
    assert done.code == 2
    assert "put susy.parquet" in done.err
    with pytest.raises(InvalidInput, match="datasets fetch"):
        folder_table("banknote")


def test_the_list_says_what_is_here(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder.mkdir()
    pq.write_table(pa.table({"a": [1]}), folder / "banknote.parquet")
    done = run(capsys, "datasets", "list")
    assert done.code == 0
    lines = {line.split()[0]: line for line in reversed(done.out.splitlines()) if line.strip()}
    assert "here" in lines["banknote"]
    assert "fetch" in lines["adult"]
    assert "absent" in lines["susy"]
    for dataset in DATASETS.values():
        assert f"{dataset.rows:,}" in lines[dataset.name]
        assert dataset.licence.split()[0] in done.out


def test_the_list_fits_on_eighty_columns(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = run(capsys, "datasets", "list")
    assert max(len(line.rstrip()) for line in done.out.splitlines() if not line.startswith("The folder")) <= 80


def test_fetch_checks_a_table_that_is_there(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.mkdir()
    path = folder / "banknote.parquet"
    table = fetch._parsed(dataset_named("banknote"), getter("banknote")(dataset_named("banknote").urls[0]))
    pq.write_table(table, path)
    known = replace(dataset_named("banknote"), rows=table.num_rows, checksum=fetch.checksum_of(table))
    monkeypatch.setattr("dpregress.datasets.dataset_named", lambda _: known)
    done = run(capsys, "datasets", "fetch", "banknote")
    assert (done.code, done.out) == (0, f"banknote is there already: {path}: 2 rows, as known.\n")
    wrong = {
        "it has no column 'entropy'": table.drop_columns(["entropy"]),
        "its number of rows is 1, not 2": table.slice(0, 1),
        "its cells or the names of its columns are other ones": pa.concat_tables([table.slice(0, 1)] * 2),
    }
    for words, other in wrong.items():
        pq.write_table(other, path)
        before = path.read_bytes()
        done = run(capsys, "datasets", "fetch", "banknote")
        said = f"error: {path} is not the known table banknote: {words}; remove it and fetch the table again\n"
        assert (done.code, done.out, done.err) == (2, "", said)
        assert path.read_bytes() == before
    path.write_bytes(b"no Parquet file")
    done = run(capsys, "datasets", "fetch", "banknote")
    assert done.code == 2
    assert done.err.count("\n") == 1


def test_a_wrong_table_without_a_download_names_its_source(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder.mkdir()
    pq.write_table(pa.table({"SHIFT": [1]}), folder / "nist_taxi.parquet")
    done = run(capsys, "datasets", "fetch", "nist_taxi")
    assert done.code == 2
    assert "its number of rows is 1, not 226,051; get it from its source (NIST PSCR Temporal Map Challenge)" in done.err


def test_a_checksum_knows_rows_and_not_their_order() -> None:
    rng = np.random.default_rng(0)
    table = pa.table({"a": rng.normal(size=20), "b": [str(place) for place in range(20)]})
    assert fetch.checksum_of(table) == fetch.checksum_of(table.take(rng.permutation(20)))
    assert fetch.checksum_of(table) != fetch.checksum_of(table.rename_columns(["b", "a"]))
    assert fetch.checksum_of(table) != fetch.checksum_of(table.slice(0, 19))


@pytest.mark.slow
@pytest.mark.parametrize("name", [each.name for each in DATASETS.values() if each.checksum])
def test_checksums_are_those_of_the_real_tables(name: str) -> None:
    table = pq.read_table(data_file(name))
    assert table.num_rows == DATASETS[name].rows
    assert DATASETS[name].columns in (tuple(table.column_names), ())
    assert fetch.checksum_of(table) == DATASETS[name].checksum
