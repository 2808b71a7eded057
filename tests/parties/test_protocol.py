"""The protocol as institutions run it: three directories, one analyst, and everything that can go wrong."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpregress import ApproxDP, SQLiteLedger
from dpregress.cli import main
from dpregress.errors import InvalidInput
from dpregress.parties import Alignment, load_joint
from dpregress.parties.align import row_order
from dpregress.parties.documents import signed
from dpregress.parties.keys import open_identity
from dpregress.releases.model_files import load_model, load_moments
from tests.parties.study import PARTIES, write_study
from tests.support import run

Capture = pytest.CaptureFixture[str]


def ok(capsys: Capture, *arguments: object) -> str:
    outcome = run(capsys, "vertical", *arguments)
    assert outcome.code == 0, outcome.err
    return outcome.out


def refused(capsys: Capture, *arguments: object) -> str:
    """The one line of a refusal."""
    outcome = run(capsys, "vertical", *arguments)
    assert outcome.code == 2, outcome.out
    assert outcome.err.startswith("error: ")
    assert outcome.err.count("\n") == 1
    return outcome.err


def agree(capsys: Capture, folder: Path) -> None:
    ok(capsys, "plan", folder / "study.toml", "--key", folder / "alignment.key", "--out", folder / "shared")
    for party in PARTIES:
        ok(capsys, "sign", folder / "shared/plan.json", "--party", party, "--keys", folder / f"{party}-keys")


def step(folder: Path, name: str, party: str, *more: object) -> tuple[object, ...]:
    return (
        name, folder / "shared/plan.json", *([] if "--mock" in more else [folder / f"{party}.csv"]), "--party", party,
        "--keys", folder / f"{party}-keys", "--key", folder / "alignment.key", "--exchange", folder / "exchange", *more,
    )  # fmt: skip


def release(folder: Path, party: str, *more: object) -> tuple[object, ...]:
    return step(
        folder,
        "release",
        party,
        "--ledger",
        folder / f"{party}.db",
        "--dataset",
        party,
        "--out",
        folder / "public",
        *more,
    )


def open_ledgers(folder: Path, epsilon: float = 1e9) -> None:
    for party in PARTIES:
        SQLiteLedger.create(folder / f"{party}.db", party, ApproxDP(epsilon, 1e-6))


def released(capsys: Capture, folder: Path) -> list[Path]:
    """All steps up to the releases."""
    open_ledgers(folder)
    agree(capsys, folder)
    for party in PARTIES:
        ok(capsys, *step(folder, "align", party))
    for party in PARTIES:
        ok(capsys, *release(folder, party))
    return [folder / "public" / f"{party}.release.json" for party in PARTIES]


def join(folder: Path, files: list[Path]) -> tuple[object, ...]:
    return ("join", folder / "shared/plan.json", *files, "--out", folder / "public", "--overwrite")


@pytest.fixture
def study(tmp_path: Path, capsys: Capture, seed: int) -> tuple[Path, list[Path]]:
    """A study at an ordinary budget, released."""
    write_study(tmp_path, np.random.default_rng(seed))
    return tmp_path, released(capsys, tmp_path)


def test_from_agreement_to_model(tmp_path: Path, capsys: Capture, seed: int) -> None:
    """At a vanishing price the model is least squares of the people in all three tables, whatever their order.

    Sketching at k = n = 4096 Hadamard rows leaves shrinkage by 1/k of each correlation.
    """
    x, y = write_study(tmp_path, np.random.default_rng(seed), n=4096, epsilon=1e6, more='mixing = "hadamard"\nk = 4096')
    files = released(capsys, tmp_path)
    said = ok(capsys, *join(tmp_path, files))
    assert "Flag" not in said
    joint = tmp_path / "public/joint.json"
    out = tmp_path / "model"
    said = ok(capsys, "fit", joint, "--target", "cost", "--features", "age,smoker=yes,dose", "--out", out)
    assert "clinic: epsilon" in said
    assert "Over all releases" in said
    model = load_model(out / "model.json")
    design = np.column_stack([np.ones(len(x)), x])
    expected = np.linalg.lstsq(design, y, rcond=None)[0]
    assert model.features == ("age", "smoker=yes", "dose")
    scale = x.std(axis=0)
    assert np.allclose(model.coef * scale, expected[1:] * scale, atol=0.05)
    assert load_moments(out / "model.json").space.order == 4
    spent = json.loads((out / "privacy.json").read_text())["total"]["mu"]
    assert math.isclose(spent, math.sqrt(3) * ApproxDP(1e6, 1e-6).gaussian_mu, rel_tol=1e-9)
    ok(
        capsys,
        "fit",
        joint,
        "--target",
        "smoker=yes",
        "--features",
        "age",
        "--family",
        "binomial",
        "--out",
        tmp_path / "m2",
    )
    assert (load_model(tmp_path / "m2/model.json").coef != 0).all()


def test_plan_says_what_to_expect(tmp_path: Path, capsys: Capture, seed: int) -> None:
    """How well correlations will be known, and that a small study at an ordinary budget is not worth it."""
    write_study(tmp_path, np.random.default_rng(seed))
    plan = ("plan", tmp_path / "study.toml", "--key", tmp_path / "key", "--out", tmp_path / "shared", "--overwrite")
    assert "too large to be useful" in ok(capsys, *plan)
    terms = tmp_path / "study.toml"
    terms.write_text(terms.read_text().replace("n = 400", "n = 4000000"))
    assert "too large" not in ok(capsys, *plan, "--confirm-delta")  # 1e-6 is above 1/n then


def test_people_missing_somewhere(tmp_path: Path, capsys: Capture, seed: int) -> None:
    """By the rule "any" they count, with the middle of their bounds; the parties agree on n all the same."""
    write_study(tmp_path, np.random.default_rng(seed), people="any", missing=30)
    files = released(capsys, tmp_path)
    ok(capsys, *join(tmp_path, files))
    assert load_joint(tmp_path / "public/joint.json").joint.moments.n == 430


def test_release_is_made_once(study: tuple[Path, list[Path]], capsys: Capture) -> None:
    """The same bytes and no further charge; a lost file is not made again unpaid."""
    folder, files = study
    before = files[0].read_bytes()
    files[0].unlink()
    assert "nothing charged" in ok(capsys, *release(folder, "clinic"))
    assert files[0].read_bytes() == before
    assert len(SQLiteLedger(folder / "clinic.db", "clinic").charges) == 1
    (kept,) = (folder / "clinic-keys").glob("*.release.json")
    kept.unlink()
    assert "charged before" in refused(capsys, *release(folder, "clinic"))
    assert len(SQLiteLedger(folder / "clinic.db", "clinic").charges) == 1


def test_two_at_once_release_once(tmp_path: Path, capsys: Capture, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both stand before the ledger when neither is charged: two different noisy copies would cost as one."""
    write_study(tmp_path, np.random.default_rng(seed))
    agree(capsys, tmp_path)
    open_ledgers(tmp_path)
    for party in PARTIES:
        ok(capsys, *step(tmp_path, "align", party))
    compose_statements, reserve = threading.Barrier(2), SQLiteLedger.reserve

    def wait(self: SQLiteLedger, *arguments: Any, **options: Any) -> Any:
        compose_statements.wait(60)
        return reserve(self, *arguments, **options)

    def attempt(_: int) -> int:
        try:
            main(["vertical", *map(str, release(tmp_path, "clinic"))])
        except SystemExit as stop:
            return int(stop.code or 0)
        return 0

    monkeypatch.setattr(SQLiteLedger, "reserve", wait)
    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(attempt, range(2))) == [0, 2]
    assert "charged before" in capsys.readouterr().err
    assert len(SQLiteLedger(tmp_path / "clinic.db", "clinic").charges) == 1


def test_inspect(study: tuple[Path, list[Path]], capsys: Capture) -> None:
    """Words, numbers and guarantees; no pseudonym is in the file."""
    folder, files = study
    said = ok(capsys, "inspect", files[0], "--plan", folder / "shared/plan.json")
    for word in ("age, smoker=yes", "epsilon = 1", "No number in it belongs to one person", "Signed by clinic"):
        assert word in said
    pseudonyms = json.loads((folder / "exchange/clinic.pseudonyms.json").read_text())["pseudonyms"]
    assert not any(one in files[0].read_text() for one in pseudonyms)


def resigned(folder: Path, party: str, path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """A release that its own party changed and signed again."""
    record = json.loads(path.read_text())
    del record["signature"]
    change(record)
    path.write_text(signed(record, open_identity(folder / f"{party}-keys").private_key))


def test_tampered(study: tuple[Path, list[Path]], capsys: Capture) -> None:
    folder, files = study
    record = json.loads(files[1].read_text())
    record["mixture"]["sigma"] *= 2
    files[1].write_text(json.dumps(record))
    assert "changed after it was signed" in refused(capsys, *join(folder, files))
    assert "changed after it was signed" in refused(capsys, "inspect", files[1], "--plan", folder / "shared/plan.json")


def test_truncated(study: tuple[Path, list[Path]], capsys: Capture) -> None:
    folder, files = study
    files[1].write_text(files[1].read_text()[:-500])
    assert "cut off" in refused(capsys, *join(folder, files))


def test_repeated_and_missing(study: tuple[Path, list[Path]], capsys: Capture) -> None:
    folder, files = study
    assert "second release of clinic" in refused(capsys, *join(folder, [*files, files[0]]))
    assert "no release of insurer" in refused(capsys, *join(folder, files[:2]))


def test_mismatched(study: tuple[Path, list[Path]], capsys: Capture) -> None:
    """Its own party signs a file that is not what the plan has; or the plan is another."""
    folder, files = study
    text = files[2].read_text()
    changes: dict[str, Callable[[dict[str, Any]], None]] = {
        "n and k are 399": lambda record: record.update(n=399),
        "another agreement": lambda record: record.update(agreement="0" * 64),
        "other columns": lambda record: record["moments"]["frame"].update(features=["price"]),
        "numbers where the plan has": lambda record: record["mixture"].update(total="AAAAAAAAAAA="),
        "spends more": lambda record: record["mixture"].update(events=[{"kind": "gdp", "mu": 9.0}]),
        "not a positive number": lambda record: record["mixture"].update(sigma=0.0),
        "cannot be inverted": lambda record: record["mixture"]["frame"].update(whitening=[[1.0, 0.0], [0.0, 0.0]]),
        "about other people": lambda record: record.update(people="0" * 64),
        "another order": lambda record: record.update(order="0" * 64),
        "invented and real": lambda record: record.update(mock=True),
        "does not hold": lambda record: record.pop("mixture"),
    }
    for said, change in changes.items():
        files[2].write_text(text)
        resigned(folder, "insurer", files[2], change)
        assert said in refused(capsys, *join(folder, files)), said


def test_misaligned_within_a_party(tmp_path: Path, capsys: Capture, seed: int) -> None:
    """Rows shuffled against their identifiers: digests cannot see it, the shared column does, at little noise."""
    more = 'shared = {clinic = "age", lab = "age_again"}\nk = 256'
    rng = np.random.default_rng(seed)
    write_study(tmp_path, rng, epsilon=1e4, more=more)
    lines = (tmp_path / "lab.csv").read_text().splitlines()
    ids, values = zip(*(line.split(",", 1) for line in lines[1:]), strict=True)
    mixed = "\n".join(f"{one},{values[i]}" for one, i in zip(ids, rng.permutation(len(ids)), strict=True))
    (tmp_path / "lab.csv").write_text(lines[0] + "\n" + mixed + "\n")
    files = released(capsys, tmp_path)
    said = ok(capsys, *join(tmp_path, files))
    assert "probably not of the same people" in said
    assert load_joint(tmp_path / "public/joint.json").flags


def test_check_that_cannot_tell_says_so(tmp_path: Path, capsys: Capture, seed: int) -> None:
    write_study(tmp_path, np.random.default_rng(seed), more='shared = {clinic = "age", lab = "age_again"}')
    assert "says nothing" in ok(capsys, *join(tmp_path, released(capsys, tmp_path)))


def test_mock(tmp_path: Path, capsys: Capture, seed: int) -> None:
    """All steps on invented rows, no table and no ledger touched; the output says so everywhere."""
    write_study(tmp_path, np.random.default_rng(seed))
    agree(capsys, tmp_path)
    for party in PARTIES:
        ok(capsys, *step(tmp_path, "align", party, "--mock"))
    for party in PARTIES:
        said = ok(capsys, *step(tmp_path, "release", party, "--mock", "--out", tmp_path / "public"))
        assert "nothing charged" in said
    files = [tmp_path / "public" / f"{party}.release.json" for party in PARTIES]
    assert "INVENTED" in ok(capsys, *join(tmp_path, files))
    joint = tmp_path / "public/joint.json"
    assert "INVENTED" in ok(capsys, "fit", joint, "--target", "cost", "--out", tmp_path / "model")
    open_ledgers(tmp_path)
    assert "aligned invented people" in refused(capsys, *release(tmp_path, "clinic"))
    assert not SQLiteLedger(tmp_path / "clinic.db", "clinic").charges


def test_alignment_refusals(tmp_path: Path, capsys: Capture, seed: int) -> None:
    """Another number of people, another key, a share that was not committed to, an unsigned or changed plan."""
    write_study(tmp_path, np.random.default_rng(seed))
    assert "no clinic.signature.json" in _after_plan(capsys, tmp_path)
    for party in PARTIES:
        ok(capsys, "sign", tmp_path / "shared/plan.json", "--party", party, "--keys", tmp_path / f"{party}-keys")
    for party in PARTIES:
        ok(capsys, *step(tmp_path, "align", party))
    key = (tmp_path / "alignment.key").read_text()
    (tmp_path / "alignment.key").write_text("00" * 32)
    assert "not the alignment key" in refused(capsys, *step(tmp_path, "align", "clinic"))
    (tmp_path / "alignment.key").write_text(key)
    shares = tmp_path / "lab-keys/seed.share"
    kept = shares.read_text()
    shares.write_text("11" * 32)
    assert "seed share was changed" in refused(capsys, *step(tmp_path, "align", "lab"))
    shares.write_text(kept)
    # a party whose own program does not look reveals another share than it committed to
    listed = tmp_path / "exchange/lab.pseudonyms.json"
    honest = listed.read_text()
    resigned(tmp_path, "lab", listed, lambda record: record.update(seed_share="11" * 32))
    assert "another seed share than lab committed to" in refused(capsys, *step(tmp_path, "align", "clinic"))
    listed.write_text(honest)
    lines = (tmp_path / "insurer.csv").read_text().splitlines()
    (tmp_path / "insurer.csv").write_text("\n".join(lines[:-50]) + "\n")
    assert "the plan says 400" in refused(capsys, *step(tmp_path, "align", "insurer"))
    plan = tmp_path / "shared/plan.json"
    plan.write_text(plan.read_text().replace('"n": 400', '"n": 401'))
    assert "signs another plan" in refused(capsys, *step(tmp_path, "align", "clinic"))


@pytest.mark.parametrize("again", ["spaces", "upper case", "same", "order", "number", "text", "none", "share"])
def test_a_pseudonym_has_one_spelling(again: str, tmp_path: Path, capsys: Capture, seed: int) -> None:
    """One person under 40 names would stand in 40 rows of the honest parties' mixtures, for one charge."""
    write_study(tmp_path, np.random.default_rng(seed), people="any", missing=39)
    agree(capsys, tmp_path)
    for party in PARTIES:
        step_said = ok(capsys, *step(tmp_path, "align", party))
    assert "agree on 439 people" in step_said
    listed = tmp_path / "exchange/lab.pseudonyms.json"
    names = json.loads(listed.read_text())["pseudonyms"]
    victim = next(name for name in names if any(letter in "abcdef" for letter in name[2:]))
    forged: Any = {
        "spaces": [victim[:2] + " " * i + victim[2:] for i in range(40)],
        "upper case": sorted([*names, victim.upper()]),
        "same": sorted([*names, victim]),
        "order": names[::-1],
        "number": [*names, 7],
        "text": "".join(names),
        "none": None,
        "share": names,
    }[again]
    change = {"pseudonyms": forged, **({"seed_share": 7} if again == "share" else {})}
    resigned(tmp_path, "lab", listed, lambda record: record.update(change))
    open_ledgers(tmp_path)
    assert "lab.pseudonyms.json" in refused(capsys, *release(tmp_path, "clinic"))
    assert not SQLiteLedger(tmp_path / "clinic.db", "clinic").charges


def test_no_row_stands_in_two_places() -> None:
    people = Alignment((b"a", b"b", b"a"), b"", "", mock=False)
    assert row_order(people, [b"b"]).tolist() == [-1, 0, -1]
    with pytest.raises(InvalidInput, match="twice"):
        row_order(people, [b"b", b"a"])


def _after_plan(capsys: Capture, folder: Path) -> str:
    ok(capsys, "plan", folder / "study.toml", "--key", folder / "alignment.key", "--out", folder / "shared")
    return refused(capsys, *step(folder, "align", "clinic"))


def test_release_refusals(tmp_path: Path, capsys: Capture, seed: int) -> None:
    """Without a ledger, beyond its budget, or with another party's keys: nothing is released."""
    write_study(tmp_path, np.random.default_rng(seed))
    agree(capsys, tmp_path)
    for party in PARTIES:
        ok(capsys, *step(tmp_path, "align", party))
    bare = step(tmp_path, "release", "clinic", "--out", tmp_path / "public")
    assert "give --ledger" in refused(capsys, *bare)
    SQLiteLedger.create(tmp_path / "clinic.db", "clinic", ApproxDP(0.5, 1e-6))
    assert "does not cover" in refused(capsys, *release(tmp_path, "clinic"))
    SQLiteLedger.create(tmp_path / "lab.db", "lab", ApproxDP(5.0, 1e-6))
    swapped = [str(part).replace("lab-keys", "clinic-keys") for part in release(tmp_path, "lab")]
    assert "not the keys" in refused(capsys, *swapped)
    assert not SQLiteLedger(tmp_path / "lab.db", "lab").charges
    assert not (tmp_path / "public").exists()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("n = 400", "n = 0", "at least 1"),
        ("n = 400", "m = 400", "'m'"),
        ('people = "all"', 'people = "most"', "people is one of"),
        ("lower = -1", "lower = 2", "lower must be less than upper"),
        ("[parties.lab.columns.dose]", "[parties.lab.columns.age]", "two parties hold"),
        ('identifiers = ["person"]', 'identifiers = ["dose"]', "cannot be a column"),
        ("epsilon = 1.0", "epsilon = -1.0", "epsilon must be positive"),
        ("[parties.lab]", '[parties."../lab"]', "names of files"),
        ('unit = "years"', 'units = "years"', "takes lower and upper"),
    ],
)
def test_plan_refusals(old: str, new: str, said: str, tmp_path: Path, capsys: Capture, seed: int) -> None:
    """One line, nothing written, no key made."""
    write_study(tmp_path, np.random.default_rng(seed))
    terms = tmp_path / "study.toml"
    text = terms.read_text()
    assert old in text
    if new.startswith('[parties."'):
        text = text.replace("[parties.lab.columns", '[parties."../lab".columns')
    terms.write_text(text.replace(old, new, 1))
    error = refused(capsys, "plan", terms, "--key", tmp_path / "alignment.key", "--out", tmp_path / "shared")
    assert said in error
    assert not (tmp_path / "alignment.key").exists()
    assert not (tmp_path / "shared").exists()


def test_keys_are_for_their_owner(tmp_path: Path, capsys: Capture, seed: int) -> None:
    """Secrets are readable by their owner alone, and never replaced."""
    write_study(tmp_path, np.random.default_rng(seed))
    agree(capsys, tmp_path)
    secrets = [tmp_path / "alignment.key", *(tmp_path / "lab-keys").iterdir()]
    assert len(secrets) == 3
    assert all(path.stat().st_mode & 0o077 == 0 for path in secrets)
    before = [path.read_bytes() for path in secrets]
    ok(capsys, "sign", tmp_path / "shared/plan.json", "--party", "lab", "--keys", tmp_path / "lab-keys")
    assert [path.read_bytes() for path in secrets] == before


def test_pseudonyms_are_for_their_owner(tmp_path: Path, capsys: Capture, seed: int) -> None:
    """The folder that is made for them too; one that is there keeps its mode."""
    write_study(tmp_path, np.random.default_rng(seed))
    agree(capsys, tmp_path)
    ok(capsys, *step(tmp_path, "align", "clinic"))
    exchange = tmp_path / "exchange"
    assert exchange.stat().st_mode & 0o777 == 0o700
    assert (exchange / "clinic.pseudonyms.json").stat().st_mode & 0o777 == 0o600
    exchange.chmod(0o750)
    ok(capsys, *step(tmp_path, "align", "clinic"))
    assert exchange.stat().st_mode & 0o777 == 0o750


def test_a_signature_is_not_replaced_by_anothers(tmp_path: Path, capsys: Capture, seed: int) -> None:
    """Whoever can write to the folder would otherwise take a party's place; a new plan is signed anew."""
    write_study(tmp_path, np.random.default_rng(seed))
    agree(capsys, tmp_path)
    plan, signature = tmp_path / "shared/plan.json", tmp_path / "shared/lab.signature.json"
    before = signature.read_bytes()
    mine, others = (("sign", plan, "--party", "lab", "--keys", tmp_path / keys) for keys in ("lab-keys", "clinic-keys"))
    assert "with other keys" in refused(capsys, *others)
    assert signature.read_bytes() == before
    assert "with other keys" in refused(capsys, *others[:-1], tmp_path / "new-keys")
    assert not (tmp_path / "new-keys").exists()
    ok(capsys, *mine)
    signature.write_text("{")
    ok(capsys, *others)
    plan.write_text(plan.read_text().replace('"n": 400', '"n": 401'))
    ok(capsys, *mine)
    assert "with other keys" in refused(capsys, *others)


@pytest.mark.parametrize("lost", ["plan", "party", "public_key", "seed_commitment", "signature"])
def test_a_signature_that_lacks_something(lost: str, tmp_path: Path, capsys: Capture, seed: int) -> None:
    """One line, also where the party signed the lack itself."""
    write_study(tmp_path, np.random.default_rng(seed))
    agree(capsys, tmp_path)
    path = tmp_path / "shared/lab.signature.json"
    record = json.loads(path.read_text())
    if lost == "signature":
        del record[lost]
        path.write_text(json.dumps(record))
    else:
        resigned(tmp_path, "lab", path, lambda record: record.pop(lost))
    assert "lab.signature.json" in refused(capsys, *step(tmp_path, "align", "clinic"))


def test_invented_people_do_not_replace_real_ones(tmp_path: Path, capsys: Capture, seed: int) -> None:
    """The other way round is how a rehearsal becomes a study."""
    write_study(tmp_path, np.random.default_rng(seed))
    agree(capsys, tmp_path)
    ok(capsys, *step(tmp_path, "align", "lab", "--mock"))
    ok(capsys, *step(tmp_path, "align", "lab", "--mock"))
    ok(capsys, *step(tmp_path, "align", "lab"))
    before = (tmp_path / "exchange/lab.pseudonyms.json").read_bytes()
    assert "holds real people" in refused(capsys, *step(tmp_path, "align", "lab", "--mock"))
    assert (tmp_path / "exchange/lab.pseudonyms.json").read_bytes() == before
