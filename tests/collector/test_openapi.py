"""The service does what its OpenAPI document says, whatever it is sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from dpregress.collector.server.openapi import interface
from dpregress.collector.store import open_store
from tests.collector.support import ADMIN_KEY, get, make_study, reports, running, send
from tests.collector.two import shares, two_study
from tests.support import missing

try:
    import schemathesis
except ImportError:
    schemathesis = None

PATHS = sorted(interface(100, 100)["paths"])
_FEW = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), database=None)


@pytest.fixture(scope="module", params=["devices add noise", "seeds", "words"])
def port(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A collector of noisy reports, and either one of two collectors."""
    folder = tmp_path_factory.mktemp("openapi")
    if request.param != "devices add noise":
        holder = ["seeds", "words"].index(request.param)
        study = two_study(folder, 1)
        with running(study, folder / "s.db", holder=holder) as found:
            body = b"".join(pair[holder].encode() for pair in shares(study, 1, 10))
            assert send(found, body, "/api/reports/batch")[0] == 200
            yield found
        with open_store(folder / "s.db") as store:
            assert store.verify() == 10
        return
    study = make_study(folder, 1)
    with running(study, folder / "s.db", public=folder / "pilot.csv", signature=b'{"study": ""}') as found:
        body = b"".join(each.encode() for each in reports(study, 1, 10))
        assert send(found, body, "/api/reports/batch")[0] == 200
        yield found
    with open_store(folder / "s.db") as store:
        assert store.verify() == 10


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of schemathesis and what it imports
@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("path", [path for path in PATHS if path != "/openapi.json"])
def test_schemathesis(path: str, keyed: bool, port: int) -> None:
    """Generated requests, valid and not: no server error, no undocumented status, content type or body."""
    if schemathesis is None:
        missing("schemathesis")
    schema = schemathesis.openapi.from_url(f"http://127.0.0.1:{port}/openapi.json")
    operations = [found.ok() for found in schema.get_all_operations() if found.ok().path == path]
    assert operations
    headers = {"authorization": f"Bearer {ADMIN_KEY.hex()}"} if keyed else {}
    # no schema tells which bytes are a report; and where the key is always sent, it is never left out
    excluded = [schemathesis.checks.CHECKS.get_one("positive_data_acceptance")]
    excluded += [schemathesis.checks.CHECKS.get_one("ignored_auth")] if keyed else []
    for operation in operations:

        @_FEW
        @given(case=operation.as_strategy())
        def check(case: object) -> None:
            case.call_and_validate(headers=headers, excluded_checks=excluded)  # type: ignore[attr-defined]

        check()


def test_every_route_is_described(port: int) -> None:
    described = json.loads(get(port, "/openapi.json")[2])["paths"]
    assert set(described) == set(PATHS)
    for path, methods in described.items():
        for method in methods:
            status = send(port, b"", path, method.upper())[0]
            assert str(status) in methods[method]["responses"], (path, status)


def test_wild_requests(port: int) -> None:
    """Methods, paths and headers that nobody documented get a problem, never a failure."""
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        for path in (*PATHS, "/nothing", "/api//reports", "/%00", "/static/%ff"):
            status, headers, body = send(port, b"x", path, method)
            assert 400 <= status < 500
            assert headers["content-type"] == "application/problem+json"
            assert json.loads(body)["status"] == status
    for value in ("-1", "1e3", "x" * 200):
        assert 400 <= send(port, b"", "/api/reports", "POST", **{"content-length": value})[0] < 500


def test_no_route_names_a_path(tmp_path: Path, port: int) -> None:
    """No answer tells where the store is."""
    for path in (*PATHS, "/nothing"):
        assert str(tmp_path.parent).encode() not in get(port, path)[2]
