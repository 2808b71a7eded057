"""Files that no result may replace, whatever --overwrite says."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpregress.cli import main

TABLE = "age,visits\n" + "".join(f"{20 + i % 50},{i % 7}\n" for i in range(400))
SCHEMA = "[age]\nlower = 18\nupper = 80\n[visits]\nlower = 0\nupper = 10\n"


@pytest.mark.parametrize("out", ["budget.db", "rows.csv", "schema.toml"])
def test_ledgers_and_inputs_are_kept(
    out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text(TABLE)
    Path("schema.toml").write_text(SCHEMA)
    main(["ledger", "new", "budget.db", "--dataset", "d", "--epsilon", "3", "--delta", "1e-6"])
    before = Path(out).read_bytes()
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main(
            ["release", "rows.csv", "--schema", "schema.toml", "--columns", "age,visits", "--epsilon", "1",
             "--delta", "1e-6", "--ledger", "budget.db", "--dataset", "d", "--out", out, "--overwrite"]
        )  # fmt: skip
    assert stop.value.code == 2
    assert "choose another --out" in capsys.readouterr().err
    assert Path(out).read_bytes() == before
