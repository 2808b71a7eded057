"""The page of the papers is what the kept summaries give, whole and plain."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpregress.errors import InvalidInput
from dpregress.experiments.catalogue import EXPERIMENTS
from dpregress.experiments.page import reproduction_page
from dpregress.experiments.summaries import read_summaries

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "benchmarks" / "reproduction"


def test_the_page_is_generated_and_not_typed() -> None:
    text = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert text == reproduction_page(read_summaries(KEPT)), (
        "run: dpregress experiment page --runs benchmarks/reproduction --out docs/reproduction.md --overwrite"
    )


def test_every_figure_has_a_row_and_its_claims() -> None:
    summaries = read_summaries(KEPT)
    assert set(EXPERIMENTS) - set(summaries) <= {"ferrando-3-pgm"}  # needs JAX, and hours
    text = reproduction_page(summaries)
    for name, experiment in EXPERIMENTS.items():
        assert text.count(f"| [{name}](#{name}) |") == 1
        assert f"### {name}\n" in text
        if name in summaries:
            assert f"<!-- plot: {name} -->" in text
            assert f"dpregress experiment run {name}" in text
            part = " ".join(text.split(f"### {name}\n")[1].split("###")[0].split())
            for claim in experiment.claims:
                assert claim.text in part


def test_what_was_not_run_says_so() -> None:
    text = reproduction_page({})
    assert text.count("| not run |") == len(EXPERIMENTS)
    assert "nan" not in text


def test_a_folder_without_summaries_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="holds no summaries"):
        read_summaries(tmp_path)


def test_a_file_that_is_no_summary_is_refused_by_its_name(tmp_path: Path) -> None:
    whole = (KEPT / "wu-2.json").read_text(encoding="utf-8")
    held = json.loads(whole)
    curve = held["curves"][0]
    wrong: dict[str, str | bytes] = {
        "cut off": whole[: len(whole) // 2],
        "bytes": b"\xff\xfe",
        "empty": "",
        "a list": "[]",
        "a number": "3",
        "other keys": json.dumps({"curves": []}),
        "one more key": json.dumps({**held, "more": 1}),
        "a curve of another kind": json.dumps({**held, "curves": [3]}),
        "curves of other lengths": json.dumps({**held, "curves": [{**curve, "mean": [1.0, *curve["mean"]]}]}),
        "text for numbers": json.dumps({**held, "curves": [{**curve, "mean": ["a"] * len(curve["x"])}]}),
        "points of another kind": json.dumps({**held, "points": {"a/b": [1]}}),
        "seconds of another kind": json.dumps({**held, "full_seconds": None}),
    }
    (tmp_path / "cao-1.json").write_text((KEPT / "cao-1.json").read_text(encoding="utf-8"))
    for kind, text in wrong.items():
        (tmp_path / "wu-3.json").write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises(InvalidInput) as refusal:
            read_summaries(tmp_path)
        assert str(refusal.value).startswith(f"{tmp_path / 'wu-3.json'} is no summary of a run"), kind
        assert "\n" not in str(refusal.value)
