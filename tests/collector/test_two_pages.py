"""The pages of a study of two collectors, without a browser: shares by node, and what each server lets across."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpregress.collector import Study
from dpregress.collector.addresses import origin_of
from dpregress.collector.admission import Admission
from dpregress.collector.shares.splitting import seed_words, sum_of_shares
from dpregress.collector.store import Arrival, open_store
from dpregress.collector.wire import HEADER, split_header, token_for
from tests.collector.support import get, make_study, running, send
from tests.collector.test_browser_noise import asked
from tests.collector.two import HOLDERS, shares, two_study
from tests.reference.additive_shares import VECTORS

PARTNER = "https://university.example"


@pytest.fixture
def study(tmp_path: Path, seed: int) -> Study:
    return two_study(tmp_path, seed)


# ------------------------------------------------------------ the device


def test_shares_of_the_page_are_the_known_answers() -> None:
    """Words, shares and tokens to the last bit, and integers that come back when shares are added."""
    assert asked("shares", VECTORS) == json.loads(VECTORS.read_text(encoding="utf-8"))


@pytest.mark.parametrize("family", ["binomial", "gaussian"])
@pytest.mark.parametrize("token", [None, bytes(range(32))])
def test_shares_of_the_page_add_up_to_the_answer(tmp_path: Path, seed: int, family: str, token: bytes | None) -> None:
    """Both collectors admit them; together they are the answer of the library, in each step but for rounding."""
    study = two_study(tmp_path, seed, family=family, enrolment="open" if token is None else "token")
    people: list[list[Any]] = [
        [44, 2, "no", "yes"], [90, 10, "yes", "no"], [18, 0, None, "yes"], [None, None, "no", "no"],
        [30, 4, "no", None], [1e9, -5, "yes", "yes"],
    ]  # fmt: skip
    told = {"study": study.text(), "people": people, "token": None if token is None else token.hex()}
    (tmp_path / "two.json").write_text(json.dumps(told), encoding="utf-8")
    found = asked("two", tmp_path / "two.json")
    assert found["kept"]
    for answers, pair in zip(people, found["reports"], strict=True):
        one, other = map(bytes.fromhex, pair)
        for place, data in enumerate((one, other)):
            assert isinstance(Admission(study, holder=place).check(data), Arrival)
            assert split_header(data)[3] == token_for(token or bytes(32), place)
        assert split_header(one)[2] == split_header(other)[2]
        halves = [seed_words(one[HEADER:], study.query.size), np.frombuffer(other[HEADER:], "<u8").astype(np.uint64)]
        row = study.row(answers)
        assert np.abs(sum_of_shares(halves) - study.exact_steps(row[:-1], float(row[-1]))).max() <= 1
    parts = [part for pair in found["reports"] for part in (pair[0][-32:], pair[1][2 * HEADER :])]
    assert len(set(parts)) == len(parts)


def test_the_page_refuses_what_are_not_two_collectors(tmp_path: Path) -> None:
    """One server in two spellings, IPv6, no encryption, equal names or keys, one collector; a page from elsewhere."""
    good: list[Any] = [each.encode() for each in HOLDERS]

    def at(one: str, other: str) -> dict[str, Any]:
        return {"collectors": [{**good[0], "address": one}, {**good[1], "address": other}], "cap": None, "origin": one}

    bad: list[dict[str, Any]] = [
        at("https://clinic.example", "https://CLINIC.example"), at("https://clinic.example", "https://clinic.example.:443"),
        at("https://clinic.example", "https://clinic\u3002example"), at("https://clinic.example", "https://%63linic.example"),
        at("https://192.0.2.1", "https://3221225985"), at("https://192.0.2.1", "https://0xc0.0.2.1"),
        at("http://localhost:8000", "http://127.0.0.1:8000"), at("http://localhost:8000", "http://a.localhost:8000"),
        at("http://b.a.localhost.:8000", "http://127.0.0.1:8000"), at("https://clinic.example", "http://university.example"),
        at("https://clinic.example", "https://user@university.example"),
        at("https://clinic.example", "https://university.example/path"),
        at("https://clinic.example", "javascript:alert"),
        {"collectors": good[:1], "cap": None, "origin": HOLDERS[0].address},
        {"collectors": [good[0], {**good[1], "name": "clinic"}], "cap": None, "origin": HOLDERS[0].address},
        {"collectors": [good[0], {**good[1], "key": good[0]["key"]}], "cap": None, "origin": HOLDERS[0].address},
        {"collectors": good, "cap": {"epsilon": 1, "gamma": 0}, "origin": HOLDERS[0].address},
        {"collectors": None, "cap": None, "origin": HOLDERS[0].address},
    ]  # fmt: skip
    numbers = [
        at("https://[2001:db8::1]", "https://[2001:db8::2]"), at(PARTNER, "https://[2001:db8::2]"),
        at("http://127.0.0.1:8000", "http://[::1]:8001"), at("http://[::1]:8000", "https://clinic.example"),
    ]  # fmt: skip
    fine = [at("https://clinic.example", PARTNER), at("http://127.0.0.1:1", "http://localhost:2")]
    fine.append(at("http://a.localhost:1", "http://127.0.0.1:2"))
    fine.append(at("https://localhost.example", "https://notlocalhost"))
    fine.append({**fine[0], "origin": PARTNER})
    other = {**fine[0], "origin": "https://thief.example"}
    where = tmp_path / "collectors.json"
    where.write_text(json.dumps([*bad, *numbers, *fine, other]), encoding="utf-8")
    found = asked("collectors", where)
    assert found[: len(bad)] == ["badCollectors"] * len(bad)
    assert found[len(bad) :] == ["ipv6Address"] * len(numbers) + [None] * len(fine) + ["otherAddress"]


# ------------------------------------------------------------ the servers


def crossing(headers: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.startswith("access-control")}


def test_only_the_partner_may_send_across(study: Study, tmp_path: Path, seed: int) -> None:
    """The origin in the signed study and no other one; reports and the preflight of them and no other route."""
    asks = {"access-control-request-method": "POST", "access-control-request-headers": "content-type"}
    with running(study, tmp_path / "s.db", holder=0) as port:
        status, headers, body = send(port, b"", method="OPTIONS", origin=PARTNER, **asks)
        assert (status, body) == (204, b"")
        assert crossing(headers) == {
            "access-control-allow-origin": PARTNER,
            "access-control-allow-methods": "POST",
            "access-control-allow-headers": "content-type",
            "access-control-max-age": "600",
            "access-control-expose-headers": "retry-after",
        }
        for change in (
            {"origin": "https://thief.example"}, {"origin": "null"}, {"origin": f"{PARTNER}:443"}, {"origin": "*"},
            {"origin": PARTNER.replace("https", "http")}, {"origin": HOLDERS[0].address},
            {"access-control-request-method": "GET"}, {"access-control-request-headers": "authorization"},
        ):  # fmt: skip
            status, headers, _ = send(port, b"", method="OPTIONS", **{"origin": PARTNER, **asks, **change})
            assert (status, headers["allow"], crossing(headers)) == (405, "POST", {}), change
        data = shares(study, seed, 1)[0][0].encode()
        for expected, report in ((201, data), (200, data), (422, data[:-1])):
            status, headers, body = send(port, report, origin=PARTNER)
            assert (status, headers["access-control-allow-origin"], headers["vary"]) == (expected, PARTNER, "Origin")
            assert json.loads(body)
        status, headers, _ = send(port, data, origin="https://thief.example")
        assert (status, crossing(headers)) == (200, {})
        for path in ("/api/study", "/api/status", "/api/result", "/study", "/openapi.json"):
            assert crossing(get(port, path, origin=PARTNER)[1]) == {}
        status, headers, _ = send(port, data, "/api/reports/batch", origin=PARTNER)
        assert (status, crossing(headers)) == (200, {})
        for path in ("/api/reports/batch", "/api/study"):
            status, headers, _ = send(port, b"", path, "OPTIONS", origin=PARTNER, **asks)
            assert (status, crossing(headers)) == (405, {})


def test_a_study_of_one_collector_lets_nobody_across(tmp_path: Path, seed: int) -> None:
    with running(make_study(tmp_path, seed), tmp_path / "s.db") as port:
        status, headers, _ = send(
            port, b"", method="OPTIONS", origin=PARTNER, **{"access-control-request-method": "POST"}
        )
        assert (status, crossing(headers)) == (405, {})
        assert "'self'" in get(port, "/study")[1]["content-security-policy"].partition("connect-src")[2].split(";")[0]


def test_the_page_connects_to_two_origins(study: Study, tmp_path: Path) -> None:
    """By its policy, which names nothing else; the dashboard connects to its own server only."""
    with running(study, tmp_path / "s.db", holder=1) as port:
        for path, allowed in (
            ("/study", "https://clinic.example https://university.example"),
            ("/dashboard", "'self'"),
        ):
            policy = dict(
                part.strip().split(" ", 1) for part in get(port, path)[1]["content-security-policy"].split(";")
            )
            assert policy["connect-src"] == allowed
            assert (policy["default-src"], policy["script-src"], policy["form-action"]) == (
                "'none'",
                "'self'",
                "'none'",
            )
    with open_store(tmp_path / "s.db") as store:
        assert store.count == 0


def test_origins_are_written_as_browsers_write_them() -> None:
    for address, origin in (
        ("https://Clinic.example", "https://clinic.example"), ("https://clinic.example:443", "https://clinic.example"),
        ("https://clinic.example:8443", "https://clinic.example:8443"), ("http://127.0.0.1:80", "http://127.0.0.1"),
        ("https://[2001:DB8:0::1]:1", "https://[2001:db8::1]:1"),
    ):  # fmt: skip
        assert origin_of(address) == origin
