"""The harness of the grid: what it splits, tunes, counts and sums up; not what the library's figures are."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from benchmarks.grid import Job, Parts, _judged, loaded, main, run
from benchmarks.grid_summary import figures, rising, summary
from benchmarks.tables import ASIDE, ENTRIES, REST, TUNED, chosen

from benchmarks import grid
from dpregress.errors import InvalidInput

MOST = 1_500


def parts_of(name: str, split: int = 0) -> Parts:
    return Parts.of(ENTRIES[name], loaded(name, MOST), split)


def test_the_sets_share_no_table_and_no_name() -> None:
    """The bank calls of the set aside are another file, of the same campaign."""
    files = [{entry.source for entry in entries if isinstance(entry.source, str)} for entries in (TUNED, ASIDE)]
    assert not files[0] & files[1]
    assert len(ENTRIES) == len(TUNED) + len(ASIDE) + len(REST)
    assert {entry.source for entry in ASIDE} == {
        "bank_additional", "covertype_class34", "acs_mobility", "nist_taxi", "covertype_kaggle15k", "kddcup99_10pct",
    }  # fmt: skip


def test_without_a_folder_only_simulated_and_bundled_tables_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DPREGRESS_DATA", raising=False)
    here, absent = chosen(None, "tuned")
    assert {"far", "gammaweak", "visitsbin"} <= {entry.name for entry in here}
    assert {"bank", "wine"} <= {entry.name for entry in absent}
    assert not any(isinstance(entry.source, str) for entry in here)


def test_a_table_of_the_other_set_is_refused() -> None:
    with pytest.raises(ValueError, match="no table 'covbin' in the set 'tuned'"):
        chosen(["far", "covbin"], "tuned")


def test_no_public_row_has_a_level_that_is_to_be_unseen() -> None:
    parts = parts_of("unseen")
    assert not parts.public["x5"].to_numpy().any()
    assert parts.private["x5"].to_numpy().any()


def test_a_split_is_a_partition() -> None:
    parts = parts_of("far")
    sizes = [table.num_rows for table in (parts.held_out, parts.public, parts.private)]
    assert sizes == [300, 200, 1_000]
    rows = np.concatenate([parts.rows(table)[0][:, 0] for table in (parts.held_out, parts.public, parts.private)])
    np.testing.assert_array_equal(np.sort(rows), np.sort(loaded("far", MOST)["x0"]))
    assert not parts.private.equals(parts_of("far", 1).private)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["farlin", "logn", pytest.param("poisweak", marks=pytest.mark.nightly), "gammaweak"])
def test_rows_of_every_family(name: str) -> None:
    """One row a way, peer and epsilon; the non-private fit, public-only and trivial stand in all of them."""
    frame = pd.DataFrame(run(Job(name, 0, epsilons=(3.0,), most=MOST)))
    assert list(frame[frame.method == "library"].knows) == list(grid.WAYS)
    assert (frame.error[frame.method != "TukeyEM"] == "").all(), frame.error.tolist()
    assert frame.public_only.nunique() == frame.trivial.nunique() == 1
    assert (frame.n == 1_000).all()
    assert np.isfinite(frame.ratio[frame.method != "TukeyEM"]).all()


def test_a_fit_that_fails_is_a_row_and_counts_as_infinite() -> None:
    parts = parts_of("far")

    def failing() -> None:
        raise InvalidInput("no fit")

    found = _judged(parts, parts.rows(parts.held_out)[1], 1.0, failing)
    assert found["error"] == "InvalidInput: no fit"
    assert math.isinf(found["ratio"])
    assert _judged(parts, np.ones(3), 1.0, lambda: None)["error"] == "no answer"
    assert _judged(parts, np.ones(3), 1.0, lambda: np.full(3, np.nan))["error"] == "predictions that are not finite"


def made(ratios: dict[tuple[str, str, float], list[float]]) -> pd.DataFrame:
    """Rows of one table with these ratios by method, knowledge and epsilon; public-only 1.2, trivial 1.1."""
    rows = [
        {
            "table": "t", "family": "gaussian", "n": 5_000, "columns": 3, "split": split, "public_only": 1.2,
            "trivial": 1.1, "plain_auc": math.nan, "method": method, "knows": knows, "epsilon": epsilon,
            "ratio": ratio, "mean_ratio": 1.0, "auc": math.nan, "seconds": 0.1,
            "error": "" if math.isfinite(ratio) else "no answer",
        }
        for (method, knows, epsilon), values in ratios.items()
        for split, ratio in enumerate(values)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_the_summary_names_what_does_not_hold() -> None:
    """By hand: 1.12 / 1.1 is above 1.01; one split of 1.2 is above 1.05 x 1.1; the schema alone is 2% better."""
    rows = made({
        ("library", "labelled", 0.1): [1.12, 1.12, 1.12],
        ("library", "labelled", 1.0): [1.0, 1.02, 1.2],
        ("library", "schema", 1.0): [1.0, 1.0, 1.0],
        ("GD", "labelled", 0.1): [1.2, 1.3, math.inf],
        ("TukeyEM", "schema", 1.0): [math.inf] * 3,
    })  # fmt: skip
    text = list(summary(rows))
    assert text[0] == "3 cells of 1 tables, 3 splits"
    assert "at most 1.01 x the better of public-only and trivial, median: 2 of 3" in text
    assert "    t, labelled, epsilon 0.1: 1.0182" in text
    assert "at most 1.05 x the better of public-only and trivial, worst split: 2 of 3" in text
    assert "    t, labelled, epsilon 1: 1.0909" in text
    assert "best or within 1% of the best private method that knows no more: 2 of 3" in text
    assert "    t, labelled, epsilon 1: 1.0200, library, schema 1.0000" in text
    assert "monotone in epsilon beyond 3 standard errors: 1 of 1" in text


def test_methods_are_compared_with_those_that_know_no_more() -> None:
    rows = made({
        ("library", "labelled", 1.0): [1.1], ("library", "unlabelled", 1.0): [1.2], ("library", "schema", 1.0): [1.3],
        ("GD", "labelled", 1.0): [1.0], ("GD, no labels", "unlabelled", 1.0): [1.15], ("TukeyEM", "schema", 1.0): [1.4],
    })  # fmt: skip
    best = figures(rows).set_index("knows").best.to_dict()
    assert best == {"labelled": "GD", "unlabelled": "GD, no labels", "schema": "TukeyEM"}


def test_a_rise_beyond_the_noise_is_named() -> None:
    up = made({("library", "schema", 0.3): [1.02, 1.03, 1.02], ("library", "schema", 3.0): [1.13, 1.13, 1.12]})
    ((table, knows, smaller, larger, factor),) = rising(up)
    assert (table, knows, smaller, larger) == ("t", "schema", 0.3, 3.0)
    assert factor == pytest.approx(1.1011, abs=1e-3)
    noisy = made({("library", "schema", 0.3): [1.0, 1.2, 1.1], ("library", "schema", 3.0): [1.2, 1.0, 1.11]})
    assert not rising(noisy)
    failed = made({("library", "schema", 0.3): [1.0, 1.0], ("library", "schema", 3.0): [1.0, math.inf]})
    assert len(rising(failed)) == 1


def test_the_command_writes_rows_that_the_summary_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "rows.csv"
    options = {"--tables": "rare,far", "--splits": "2", "--epsilons": "1,3", "--public": "labelled,schema"}
    options |= {"--most": str(MOST)}
    main([*(word for option in options.items() for word in option), "--no-peers", "--out", str(out)])
    printed = capsys.readouterr().out
    assert printed.count("rare ") == printed.count("far ") == 4
    assert "public only" in printed
    assert "trivial" in printed
    rows = pd.read_csv(out)  # the second table is appended to the first
    assert len(rows) == 16
    assert list(rows.table.unique()) == ["rare", "far"]
    main(["--summary", str(out)])
    assert "8 cells of 2 tables, 2 splits" in capsys.readouterr().out


def test_without_a_folder_the_command_says_what_it_leaves_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DPREGRESS_DATA", raising=False)
    main(["--tables", "wine,power"])
    assert "Left out, because DPREGRESS_DATA names no folder of tables: wine, power" in capsys.readouterr().out
