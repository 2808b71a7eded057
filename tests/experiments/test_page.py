"""The page of the papers is what the kept summaries give, whole and plain."""

from __future__ import annotations

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
        "run: dpregress experiment page --runs benchmarks/reproduction"
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
