"""The service: what is stored, what is refused and why, limits, slow clients, pages, results."""

from __future__ import annotations

import hashlib
import http.client
import json
import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from dpregress.collector import Report, Study
from dpregress.collector.admission import REASONS
from dpregress.collector.server.limits import GuardedProtocol, RateLimit
from dpregress.collector.store import open_store
from tests.collector.support import ADMIN_KEY, get, make_study, reports, running, send

NewStore = Callable[[], str]


@pytest.fixture
def study(tmp_path: Path, seed: int) -> Study:
    return make_study(tmp_path, seed)


def at(text: str) -> Callable[[], datetime]:
    return lambda: datetime.fromisoformat(text).replace(tzinfo=UTC)


def problem_of(answer: tuple[int, dict[str, str], bytes]) -> tuple[int, str]:
    status, headers, body = answer
    assert headers["content-type"] == "application/problem+json"
    found = json.loads(body)
    assert found["status"] == status
    assert found["detail"]
    return status, found["reason"]


def test_a_report_is_stored_once(study: Study, new_store: NewStore, seed: int) -> None:
    """Stored, repeated, changed; in the store when the answer comes."""
    where, (one, other) = new_store(), [each.encode() for each in reports(study, seed, 2)]
    with running(study, where) as port:
        for status, word in ((201, "stored"), (200, "repeated"), (200, "repeated")):
            answer = send(port, one)
            assert (answer[0], json.loads(answer[2])) == (status, {"status": word})
            with open_store(where) as store:
                assert store.count == 1
        changed = other[:36] + one[36:52] + other[52:]
        assert problem_of(send(port, changed)) == (409, "changed-report")
        assert b"dpregress_alarms_total 1" in get(port, "/metrics")[2]
        assert send(port, other)[0] == 201
    with open_store(where) as store:
        assert store.verify() == 2
        assert store.refused() == {"changed-report": 1}


def test_batches(study: Study, tmp_path: Path, seed: int) -> None:
    where, found = tmp_path / "s.db", [each.encode() for each in reports(study, seed, 101)]
    with running(study, where) as port:
        bad = found[3][:-4] + b"\xff\xff\xff\x7f"
        answer = send(port, b"".join([*found[:3], bad, found[0]]), "/api/reports/batch")
        results = json.loads(answer[2])["results"]
        assert answer[0] == 200
        assert [each["status"] for each in results] == [201, 201, 201, 422, 200]
        assert results[3]["reason"] == "out-of-law"
        assert send(port, b"".join(found[:100]), "/api/reports/batch")[0] == 200
        assert problem_of(send(port, b"".join(found), "/api/reports/batch")) == (413, "too-long")
        assert problem_of(send(port, found[0][:-1], "/api/reports/batch")) == (422, "wrong-size")
        assert problem_of(send(port, b"", "/api/reports/batch")) == (422, "wrong-size")
    with open_store(where) as store:
        assert store.verify() == 100


def spoilt(report: Report, study: Study) -> dict[str, tuple[bytes, int]]:
    """Reports that no honest device sends, by the reason of their refusal."""
    sent, size = report.encode(), study.query.size
    wild = np.full(size, 2**31 - 1, dtype="<i4").tobytes()
    return {
        "wrong-size": (sent[:-1], 422),
        "wrong-version": (b"DPR2" + sent[4:], 422),
        "wrong-study": (sent[:4] + bytes(32) + sent[36:], 404),
        "out-of-law": (sent[:84] + wild, 422),
    }


def test_refusals(study: Study, tmp_path: Path, seed: int) -> None:
    """Each public rule refuses by its own reason, counts it, and stores nothing."""
    where, (report,) = tmp_path / "s.db", reports(study, seed, 1)
    with running(study, where) as port:
        for reason, (body, status) in spoilt(report, study).items():
            assert problem_of(send(port, body)) == (status, reason)
        assert problem_of(send(port, report.encode() + b"\0")) == (413, "too-long")
        assert problem_of(send(port, report.encode(), **{"content-type": "text/plain"})) == (415, "wrong-type")
        assert problem_of(send(port, report.encode(), "/api/nothing"))[0] == 404
        assert problem_of(get(port, "/api/reports"))[0] == 405
        counted = get(port, "/metrics")[2].decode()
    assert 'outcome="stored"} 0' in counted
    with open_store(where) as store:
        assert store.count == 0
        refused = store.refused()
    assert refused == dict.fromkeys(
        ("wrong-size", "wrong-version", "wrong-study", "out-of-law", "too-long", "wrong-type"), 1
    )
    assert set(refused) < set(REASONS)


def test_early_and_late(study: Study, tmp_path: Path, seed: int) -> None:
    (report,) = reports(study, seed, 1)
    for time_, state, reason in (
        ("2025-12-31T23:59:59", "early", "early"),
        ("2036-01-01T00:00:00", "closed", "late"),
        ("2026-01-01T00:00:00", "open", None),
    ):
        with running(study, tmp_path / "s.db", clock=at(time_)) as port:
            answer = send(port, report.encode())
            assert json.loads(get(port, "/api/status")[2])["state"] == state
            assert answer[0] == 201 if reason is None else problem_of(answer) == (403, reason)


def test_invitations(tmp_path: Path, new_store: NewStore, seed: int) -> None:
    study, where = make_study(tmp_path, seed, enrolment="token"), new_store()
    tokens = [bytes([place]) * 32 for place in range(1, 4)]
    one, two, three = reports(study, seed, 3, [tokens[0], tokens[0], tokens[1]])
    with running(study, where) as port:
        assert problem_of(send(port, one.encode())) == (403, "unknown-token")
        with open_store(where) as store:
            store.issue([hashlib.sha256(token).digest() for token in tokens[:2]])
        assert send(port, one.encode())[0] == 201
        assert problem_of(send(port, two.encode())) == (409, "used-token")
        assert send(port, one.encode())[0] == 200
        assert send(port, three.encode())[0] == 201
    with open_store(where) as store:
        assert store.verify() == 2


def test_the_study_comes_as_it_is(study: Study, tmp_path: Path) -> None:
    signature = b'{"format": "dpregress.study-signature/1"}'
    with running(study, tmp_path / "s.db", signature=signature) as port:
        _, headers, body = get(port, "/api/study")
        assert hashlib.sha256(body).digest() == study.digest
        assert headers["etag"] == f'"{study.digest.hex()}"'
        assert Study.read(body.decode()).digest == study.digest
        assert get(port, "/api/study/signature")[2] == signature
    with running(study, tmp_path / "s.db") as port:
        assert problem_of(get(port, "/api/study/signature"))[0] == 404


def test_nothing_is_read_out_before_the_minimum(tmp_path: Path, seed: int) -> None:
    study = make_study(tmp_path, seed, minimum=30)
    key = {"authorization": f"Bearer {ADMIN_KEY.hex()}"}
    found = [each.encode() for each in reports(study, seed, 30)]
    with running(study, tmp_path / "s.db", public=tmp_path / "pilot.csv") as port:
        assert problem_of(get(port, "/api/result")) == (401, "no-key")
        assert problem_of(get(port, "/api/result", authorization="Bearer " + "0" * 64)) == (401, "no-key")
        send(port, b"".join(found[:29]), "/api/reports/batch")
        assert problem_of(get(port, "/api/result", **key)) == (403, "too-few")
        send(port, found[29])
        status, _, body = get(port, "/api/result", **key)
        assert status == 200
        assert json.loads(body)["n"] == 30
        assert [each["name"] for each in json.loads(body)["coefficients"]] == ["age", "coffee", "smoker=yes"]


def test_pages_are_strict(study: Study, tmp_path: Path) -> None:
    with running(study, tmp_path / "s.db") as port:
        for path in ("/study", "/dashboard", "/static/study.html"):
            status, headers, _ = get(port, path)
            policy = headers["content-security-policy"]
            assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "http" not in policy
            assert headers["referrer-policy"] == "no-referrer"
        for path in ("/static/nothing.js", "/static/..%2f__init__.py", "/static/%2e%2e/wire.py"):
            assert problem_of(get(port, path))[0] == 404
        assert get(port, "/")[1]["location"] == "/study"
        assert get(port, "/health")[0] == get(port, "/ready")[0] == get(port, "/openapi.json")[0] == 200


def test_requests_by_address(study: Study, tmp_path: Path, seed: int) -> None:
    (report,) = reports(study, seed, 1)
    with running(study, tmp_path / "s.db", rate=0.01, burst=3) as port:
        assert [send(port, report.encode())[0] for _ in range(3)] == [201, 200, 200]
        answer = send(port, report.encode())
        assert problem_of(answer) == (429, "rate")
        assert 50 < int(answer[1]["retry-after"]) <= 100
        elsewhere = {"x-forwarded-for": "203.0.113.7"}  # told by a proxy on this machine
        assert send(port, report.encode(), **elsewhere)[0] == 200


def test_the_bucket_of_an_address() -> None:
    now = [0.0]
    limit = RateLimit(2.0, 3.0, lambda: now[0])
    assert [limit.wait("a") for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]
    now[0] = 0.5
    assert [limit.wait("a"), limit.wait("a")] == [0.0, 0.5]
    for place in range(20_000):
        limit.wait(str(place))
    assert len(limit._left) == 10_000


def closed_after(port: int, parts: list[bytes], pause: float = 0.0) -> tuple[float, bytes]:
    """Seconds until the service closes a connection that sends these parts and then nothing, and what it said."""
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        said = b""
        try:
            for part in parts:
                connection.sendall(part)
                time.sleep(pause)
            while found := connection.recv(4096):
                said += found
        except ConnectionError:
            pass
    return time.monotonic() - began, said


def test_slow_clients_are_cut(study: Study, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No headers, half of them, half a body, a byte at a time, endless headers: cut, and others are served."""
    monkeypatch.setattr(GuardedProtocol, "patience", 0.5)
    body = reports(study, seed, 1)[0].encode()
    head = b"POST /api/reports HTTP/1.1\r\nhost: x\r\ncontent-type: application/octet-stream\r\n"
    whole = head + b"content-length: %d\r\n\r\n" % len(body)
    with running(study, tmp_path / "s.db", patience=0.5) as port:
        for parts in ([], [head], [b"G"], [whole + body, head]):
            assert closed_after(port, parts, 0.3)[0] < 10
        assert b"408" in closed_after(port, [whole + body[:40]])[1].splitlines()[0]
        dripped = [head] + [b"x-%d: y\r\n" % place for place in range(12)]
        assert closed_after(port, dripped, 0.1)[0] < 10
        assert closed_after(port, [head, *[b"x: " + b"y" * 4000 + b"\r\n"] * 20])[0] < 10
        assert send(port, body)[0] == 200
    with open_store(tmp_path / "s.db") as store:
        assert store.count == 1
        assert store.refused() == {"slow": 1}


def test_a_long_body_is_not_read(study: Study, tmp_path: Path) -> None:
    """Neither by its announced length nor in chunks."""
    with running(study, tmp_path / "s.db") as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.putrequest("POST", "/api/reports")
        connection.putheader("content-type", "application/octet-stream")
        connection.putheader("content-length", str(10**12))
        connection.endheaders()
        assert connection.getresponse().status == 413
        connection.close()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        chunks = (bytes(1000) for _ in range(50))
        headers = {"content-type": "application/octet-stream", "transfer-encoding": "chunked"}
        try:
            connection.request("POST", "/api/reports", chunks, headers, encode_chunked=True)
            assert connection.getresponse().status == 413
        except ConnectionError:  # the service may close while the rest is being sent
            pass
        finally:
            connection.close()


def test_a_store_that_fails(study: Study, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """503 while the disk refuses, nothing stored; the same bytes are stored once it works again."""
    from dpregress.collector.store import Store

    found, working = [each.encode() for each in reports(study, seed, 2)], Store.add
    with running(study, tmp_path / "s.db") as port:
        assert send(port, found[0])[0] == 201
        with monkeypatch.context() as patch:
            patch.setattr(Store, "add", lambda *_: 1 / 0)
            answer = send(port, found[1])
            assert problem_of(answer) == (503, "busy")
            assert answer[1]["retry-after"] == "1"
            assert get(port, "/ready")[0] == 503
            assert get(port, "/health")[0] == 200
        assert Store.add is working
        deadline = time.monotonic() + 20
        while send(port, found[1])[0] == 503:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert get(port, "/ready")[0] == 200
    with open_store(tmp_path / "s.db") as store:
        assert store.verify() == 2


def test_status_counts(study: Study, tmp_path: Path, seed: int) -> None:
    with running(study, tmp_path / "s.db", clock=at("2026-03-01T10:20:30")) as port:
        send(port, reports(study, seed, 1)[0].encode())
        found = json.loads(get(port, "/api/status")[2])
    assert found["arrivals"] == [{"hour": "2026-03-01T10:00:00Z", "reports": 1}]
    assert (found["accepted"], found["minimum"], found["study"]) == (1, 5, study.digest.hex())
    assert found["opens"] == "2026-01-01T00:00:00Z"


@pytest.mark.slow
def test_memory_does_not_grow(tmp_path: Path, seed: int) -> None:
    """Between 4,000 and 40,000 reports the process grows by less than 8 MB."""
    from tests.collector.test_crashes import crashing

    study, where = make_study(tmp_path, seed), str(tmp_path / "s.db")
    open_store(where, study).close()
    rng, size = np.random.default_rng(seed), study.query.size

    def body() -> bytes:
        directions = rng.normal(size=(100, size))
        answers = np.rint(directions / np.linalg.norm(directions, axis=1)[:, None] * 2.0**28).astype(np.int32)
        return b"".join(Report(study.digest, rng.bytes(16), bytes(32), row).encode() for row in answers)

    with crashing(where) as server:
        child = server.start()

        def resident() -> int:
            status = Path(f"/proc/{child}/status").read_text()
            return int(status.partition("VmRSS:")[2].split()[0])

        sizes = []
        for batches in (40, 360):
            for _ in range(batches):
                assert send(server.port, body(), "/api/reports/batch")[0] == 200
            sizes.append(resident())
        server.end(child)
    with open_store(where) as store:
        assert store.count == 40_000
    assert sizes[1] - sizes[0] < 8_000
