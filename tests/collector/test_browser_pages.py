"""The pages in a real Chromium: what leaves the participant's page, repeats, refusals, keyboard, width, dashboard."""

from __future__ import annotations

import base64
import json
import math
import shutil
import struct
import subprocess
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from scipy.stats import norm
from starlette.requests import Request
from starlette.responses import Response

from dpregress.collector import Report, Study, device_shares
from dpregress.collector.drafting import study_from_toml
from dpregress.collector.invitations import invite, new_tokens, token_hashes
from dpregress.collector.rehearsal import serving
from dpregress.collector.server.app import Collector, Settings
from dpregress.collector.server.responses import problem
from dpregress.collector.shares.joining import join_sums, read_joined
from dpregress.collector.store import Outcome, open_store
from dpregress.rows import RawRows
from tests.collector.support import ADMIN_KEY, make_study, people, pilot, reports, running, send
from tests.collector.test_two_cli import free_addresses
from tests.collector.two import HOLDERS, Two, exact_sum, two_study, words_of
from tests.support import missing

pytestmark = pytest.mark.slow  # a browser starts for each scene

FOLDER = Path(__file__).parents[1] / "browser"
#: Distinctive answers: no other number of a page or a report is written like them.
ANSWERS = [
    {"kind": "number", "fill": "47.03125"},
    {"kind": "number", "fill": "3.8046875"},
    {"kind": "choice", "fill": "1"},
    {"kind": "choice", "fill": "1"},
]
PAGES = {"/study", "/dashboard"}
READ = {"/api/study", "/api/status", "/api/result"}


def play(scene: str, **told: Any) -> dict[str, Any]:
    """What happened in a scene of ``tests/browser/drive.mjs``."""
    node, chromium = shutil.which("node"), shutil.which("chromium") or shutil.which("google-chrome")
    if node is None or chromium is None or not (FOLDER / "node_modules" / "playwright-core").exists():
        missing("node, Chromium or playwright-core (`make test-browser`)")
    assert node is not None
    asked = json.dumps({"scene": scene, "chromium": chromium, "answers": ANSWERS, **told})
    command = [node, FOLDER / "drive.mjs"]
    found = subprocess.run(command, input=asked, capture_output=True, text=True, timeout=180, check=False)
    assert found.returncode == 0, found.stderr
    seen: dict[str, Any] = json.loads(found.stdout)
    assert all(width <= shown for width, shown in seen["widths"]), seen["widths"]
    assert not seen["unlabelled"]
    assert not seen["sockets"]
    return seen


def link(port: int, study: Study, token: bytes | None = None, host: str = "127.0.0.1") -> str:
    end = "" if token is None else f"&token={token.hex()}"
    return f"http://{host}:{port}/study#study={study.digest.hex()}{end}"


def posted(seen: dict[str, Any]) -> list[bytes]:
    return [base64.b64decode(each["body"]) for each in seen["requests"] if each["method"] == "POST"]


def check_traffic(seen: dict[str, Any], port: int, report: bytes) -> None:
    """Every request goes to the collector; none but the report has a body, and none an answer in any writing."""
    raw = [each["fill"] for each in ANSWERS if each["kind"] == "number"]
    secret = [text.encode() for text in raw]
    secret += [struct.pack(form, float(text)) for text in raw for form in ("<d", ">d", "<f", ">f")]
    for request in seen["requests"]:
        where = urlsplit(request["url"])
        if where.scheme == "blob":  # the participant's own download
            continue
        assert where.netloc == f"127.0.0.1:{port}"
        assert where.query == ""
        assert where.path in PAGES | READ | {"/api/reports"} or where.path.startswith("/static/")
        if request["method"] == "POST":
            assert where.path == "/api/reports"
            assert base64.b64decode(request["body"]) == report
        else:
            assert (request["method"], request["body"]) == ("GET", None)
        told = (request["url"] + json.dumps(request["headers"])).encode() + base64.b64decode(request["body"] or "")
        assert not any(each in told for each in secret)


def study_of(folder: Path, seed: int, recipe: str, **told: Any) -> Study:
    """A study with a chosen message."""
    make_study(folder, seed, **told)
    description = folder / "study.toml"
    description.write_text(f'recipe = "{recipe}"\n' + description.read_text(encoding="utf-8"), encoding="utf-8")
    return study_from_toml(description, folder / "pilot.csv")


@pytest.mark.parametrize(
    ("recipe", "size", "locale"),
    [("unit-vector", "wide", "en-GB"), ("gaussian", "phone", "de-DE"), ("joint", "phone", "en-GB")],
)
def test_only_the_report_leaves_the_page(tmp_path: Path, seed: int, recipe: str, size: str, locale: str) -> None:
    """All traffic is the stored report: before it is sent it is kept, and it is sent four times with the same bytes."""
    study = study_of(tmp_path, seed, recipe, enrolment="token")
    where = tmp_path / "s.db"
    with running(study, where) as port:
        with open_store(where) as store:
            (address,) = invite(store, new_tokens(1), f"http://127.0.0.1:{port}")
        seen = play("participate", link=address, size=size, locale=locale)
    (kept,) = seen["keptBefore"]["reports"]
    report = base64.b64decode(kept["report"])
    check_traffic(seen, port, report)
    assert seen["posted"] == 0
    assert posted(seen) == [report] * 4  # lost, stored, repeated, repeated after a reload
    assert base64.b64decode(seen["download"]) == report
    assert (seen["focus"], seen["left"], seen["formAfter"]) == ("review", 0, False)
    found = Report.decode(report, study)
    assert found.token.hex() == address[-64:]
    with open_store(where) as store:
        assert store.verify() == 1
        assert store.refused() == {}
    assert seen["keptAfter"] == {
        "databases": ["dpregress"],
        "reports": [{"report": kept["report"], "state": "received"}],
        "rest": seen["keptBefore"]["rest"],
    }
    assert seen["keptAfter"]["rest"] == '[[],[],""]'
    assert not [each for each in seen["errors"] if "ERR_FAILED" not in each]  # but that of the lost report


def test_two_reports_of_the_same_answers_differ(tmp_path: Path, seed: int) -> None:
    """Two participants with the same answers: other names, and other noise in every number."""
    study = make_study(tmp_path, seed)
    with running(study, tmp_path / "s.db") as port:
        found = [Report.decode(posted(play("keyboard", link=link(port, study)))[0], study) for _ in range(2)]
    assert found[0].id != found[1].id
    assert (found[0].answer != found[1].answer).all()


def test_the_keyboard_suffices(tmp_path: Path, seed: int) -> None:
    study = make_study(tmp_path, seed)
    with running(study, tmp_path / "s.db") as port:
        seen = play("keyboard", link=link(port, study))
    assert seen["chosen"] == {f"question-{place}": each["fill"] for place, each in enumerate(ANSWERS)}
    assert (seen["focus"], seen["focusAfter"], seen["live"]) == ("review", "send", "polite")
    assert not seen["errors"]


def test_two_tabs_make_one_report(tmp_path: Path, seed: int) -> None:
    study = make_study(tmp_path, seed)
    with running(study, tmp_path / "s.db") as port:
        seen = play("tabs", link=link(port, study))
    assert seen["parts"][0] == seen["parts"][1]
    assert len(seen["keptAfter"]["reports"]) == 1
    assert posted(seen) == []


def test_pages_refuse(tmp_path: Path, seed: int) -> None:
    """Outside a secure context, for another study, without the hash or the invitation: no question is shown."""
    study = make_study(tmp_path, seed, enrolment="token")
    token = bytes(range(32))
    with running(study, tmp_path / "s.db") as port:
        wrong = link(port, study, token).replace(study.digest.hex(), "0" * 64)
        cases = {
            link(port, study, token, "insecure.example"): "secure connection",
            wrong: "not the study",
            link(port, study): "invitation",
            f"http://127.0.0.1:{port}/study": "incomplete",
            link(port, study, token)[:-1]: "damaged",
        }
        for address, words in cases.items():
            seen = play("refusal", link=address, size="phone")
            assert words in seen["refusal"]
            assert not seen["study"]
            if "insecure" in address:
                assert not [each for each in seen["requests"] if "/api/" in each["url"]]


def test_a_page_that_no_collector_serves_is_refused(tmp_path: Path, seed: int) -> None:
    """Its policy lets it connect to the collectors of the study only: it asks nothing and sends nothing."""
    study = two_study(tmp_path, seed)
    with running(study, tmp_path / "s.db", holder=0) as port:
        seen = play("refusal", link=link(port, study), size="phone")
    assert "cannot be loaded" in seen["refusal"]
    assert not seen["study"]
    assert {each["method"] for each in seen["requests"]} == {"GET"}


class Watched(Collector):
    """Keeps the bodies that it was sent; it refuses the first one if it has a refusal to give."""

    refusal: Outcome | None = None
    wait: float = 1.0

    async def _one(self, request: Request) -> Response:
        self.__dict__.setdefault("bodies", []).append(await request.body())
        if self.refusal is not None and len(self.bodies) == 1:
            return problem(self.refusal.status, "try again later", self.refusal.reason, wait=self.wait)
        return await super()._one(request)

    @property
    def bodies(self) -> list[bytes]:
        return list(self.__dict__.get("bodies", []))


@pytest.mark.parametrize(
    ("serves", "size", "refusal"), [(0, "wide", Outcome(503, "busy")), (1, "phone", Outcome(403, "early"))]
)
def test_each_collector_gets_one_share(tmp_path: Path, seed: int, serves: int, size: str, refusal: Outcome) -> None:
    """Two services on two ports: one share to each and nothing else. A send that fails is repeated with the same bytes,
    by the page itself or after it is opened again, also across origins. The sums, with shares of 40 other people,
    are the answers of all, and fit."""
    holders = [replace(each, address=address) for each, address in zip(HOLDERS, free_addresses(), strict=True)]
    study = replace(two_study(tmp_path, seed, enrolment="token", minimum=41), holders=tuple(holders))
    tokens = new_tokens(41)
    ports = [int(each.address.rpartition(":")[2]) for each in holders]
    with ExitStack() as opened:
        stores = [opened.enter_context(open_store(tmp_path / f"{k}.db", study, k)) for k in range(2)]
        collectors = []
        for place, store in enumerate(stores):
            store.issue(token_hashes(tokens, place))
            made = Watched(study, partial(open_store, tmp_path / f"{place}.db"), Settings(ADMIN_KEY, holder=place))
            made.refusal = refusal if place == 1 else None
            collectors.append(made)
            opened.enter_context(serving(made, ports[place]))
        elsewhere = f"{free_addresses()[0]}/api/reports"
        seen = play(
            "shares", link=link(ports[serves], study, tokens[0]), size=size, elsewhere=elsewhere, comesBack=serves == 1
        )
        one, other = (base64.b64decode(each) for _, each in seen["downloads"])
        check_shares(seen, study, ports, serves, (one, other), elsewhere)
        assert [each.bodies for each in collectors] == [[one], [other, other]]
        two = Two(study, stores, tmp_path)
        x, y = people(seed, 40)
        pairs = [device_shares(words_of(row, float(of)), study, token=token)
                 for row, of, token in zip(x, y, tokens[1:], strict=True)]  # fmt: skip
        for place in range(2):
            assert {each.status for each in two.admit([pair[place] for pair in pairs], place)} == {201}
        sums = two.sums()
    total, n = join_sums(study, sums)
    mine = study.row([float(ANSWERS[0]["fill"]), float(ANSWERS[1]["fill"]), "yes", "yes"])
    exact = exact_sum(study, x, y) + study.exact_steps(mine[:-1], float(mine[-1]))
    assert n == 41
    assert np.abs((total - exact) / study.integer_noise.scale).max() < 12 * np.sqrt(2)  # noise: below 1e-30
    assert np.isfinite(read_joined(study, sums, public=tmp_path / "pilot.csv").model.coef_).all()


def test_the_page_of_two_collectors_is_bilingual(tmp_path: Path, seed: int) -> None:
    """At the width of a phone nothing is cut off in either language."""
    holders = [replace(each, address=address) for each, address in zip(HOLDERS, free_addresses(), strict=True)]
    study, where = replace(two_study(tmp_path, seed), holders=tuple(holders)), tmp_path / "s.db"
    open_store(where, study, 0).close()
    port = int(holders[0].address.rpartition(":")[2])
    with serving(Collector(study, partial(open_store, where), Settings(ADMIN_KEY, holder=0)), port):
        seen = play("languages", link=link(port, study), languages=["en", "de"], size="phone")
    english, german = (each[3] for each in seen["spoken"])
    assert ("two shares" in english, "zwei Anteile" in german) == (True, True)
    assert not seen["errors"]


def check_shares(
    seen: dict[str, Any], study: Study, ports: list[int], serves: int, pair: tuple[bytes, bytes], elsewhere: str
) -> None:
    """What the page did, kept and said."""
    raw = [each["fill"] for each in ANSWERS if each["kind"] == "number"]
    secret = [text.encode() for text in raw]
    secret += [struct.pack(form, float(text)) for text in raw for form in ("<d", ">d", "<f", ">f")]
    for request in seen["requests"]:
        where = urlsplit(request["url"])
        body = base64.b64decode(request["body"] or "")
        if where.scheme == "blob" or request["url"] == elsewhere:
            continue
        assert where.query == ""
        place = ports.index(where.port or 0)
        if request["method"] == "POST":
            assert (where.path, body) == ("/api/reports", pair[place])
        else:
            assert (place, request["method"], body) == (serves, "GET", b"")
        told = (request["url"] + json.dumps(request["headers"])).encode() + body
        assert not any(each in told for each in secret)
    assert (seen["posted"], seen["left"], seen["formAfter"], seen["sendAfter"]) == (0, 0, False, False)
    assert [name for name, _ in seen["downloads"]] == ["clinic.share", "university.share"]
    assert seen["keptUnsent"] == {"databases": ["dpregress"], "reports": [], "rest": '[[],[],""]'}
    between, after = (seen[when]["reports"][0] for when in ("keptBetween", "keptAfter"))
    assert (between["shares"], between["arrived"]) == ([None, base64.b64encode(pair[1]).decode()], [True, False])
    assert (after["shares"], after["arrived"]) == ([None, None], [True, True])
    assert "Both collectors have their shares" in seen["after"]
    assert seen["refused"]
    clinic, university, both, page = seen["who"]
    assert ("clinic" in clinic, "university" in university, "read your answers" in both) == (True, True, True)
    assert f"127.0.0.1:{ports[serves]}" in page
    assert [text.split(" ")[-1] for text in seen["picture"][2:]] == ["all", "all"]
    assert f"{study.query.size} random-looking numbers" in seen["picture"][3]


def test_the_page_speaks_the_languages_of_the_study(tmp_path: Path, seed: int) -> None:
    study = make_study(tmp_path, seed)
    with running(study, tmp_path / "s.db") as port:
        seen = play("languages", link=link(port, study), languages=["de", "en"])
    german, english = seen["spoken"]
    assert german[:3] == ["de", "Wir stellen Ihnen vier Fragen.", "Wie alt sind Sie?"]
    assert english[:3] == ["en", "We ask you four questions.", "How old are you?"]
    assert german[3] != english[3]
    assert seen["kept"] == ANSWERS[0]["fill"]


def test_a_closed_study_takes_no_answers(tmp_path: Path, seed: int) -> None:
    study = make_study(tmp_path, seed)
    assert study.terms is not None
    closed = replace(study, terms=replace(study.terms, closes=study.terms.opens.replace(month=2)))
    with running(closed, tmp_path / "s.db") as port:
        seen = play("closed", link=link(port, closed))
    assert not seen["form"]
    assert "closed on" in seen["status"]


@pytest.mark.nightly
@pytest.mark.parametrize("recipe", ["unit-vector", "gaussian", "joint"])
def test_messages_of_the_browser_have_the_law(tmp_path: Path, seed: int, recipe: str) -> None:
    """2,000 messages of the worker in Chromium: the mean is the library's value; failure probability below 1e-8."""
    study, n, answers = study_of(tmp_path, seed, recipe), 2000, [70.0, 1.0, "yes", "no"]
    with running(study, tmp_path / "s.db") as port:
        drawn = play("draw", link=link(port, study), made=answers, count=n)["drawn"]
    row = study.row(answers)
    value = study.query.value(study.query.row_map(RawRows(row[None, :-1], row[-1:])))
    np.testing.assert_allclose(drawn["value"], value, rtol=1e-12, atol=1e-12)
    messages = np.array(drawn["messages"], dtype=np.int64)
    assert all(study.admits(each.astype(np.int32)) for each in messages)
    error = messages.mean(axis=0) * study.step - value
    limit = float(norm.isf(1e-10)) * messages.std(axis=0) * study.step / math.sqrt(n)
    assert (np.abs(error) < limit + 2.0**-study.bits).all()


def test_the_dashboard(tmp_path: Path, seed: int) -> None:
    """Results are the server's to give: with the key, and from the minimum count on."""
    study = make_study(tmp_path, seed, minimum=40)
    public, found = pilot(tmp_path, seed), [each.encode() for each in reports(study, seed, 1039)]
    address = "http://127.0.0.1:{}/dashboard"
    with running(study, tmp_path / "s.db", public=public) as port:
        send(port, b"".join(found[:39]), "/api/reports/batch")
        send(port, found[0][:-1])
        keys = ["0" * 64, ADMIN_KEY.hex()]
        seen = play("dashboard", link=address.format(port), keys=keys)
        assert seen["rows"] == []
        assert "not the admin key" in seen["told"][0]
        assert "Not yet" in seen["told"][1]
        assert seen["tiles"][0] == "39reports stored"
        for start in range(39, 1039, 100):
            send(port, b"".join(found[start : start + 100]), "/api/reports/batch")
        seen = play("dashboard", link=address.format(port), keys=[ADMIN_KEY.hex()], size="phone")
        assert "1,039 reports" in seen["told"][0]
        assert "wrong-size" in seen["refused"]  # counted with the commit after it
        assert [row[:3] for row in seen["rows"]] == ["age", "cof", "smo"]
        assert seen["traces"] == 3
        assert ADMIN_KEY.hex() not in json.dumps(seen["keptAfter"])
        assert not seen["errors"]
