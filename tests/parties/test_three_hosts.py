"""Three institutions as three processes on three loopback addresses, with nothing but HTTP between them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.parties.study import PARTIES, write_study
from tests.support import missing

HOSTS = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
ROOT = Path(__file__).parents[2]


def free_address(host: str) -> str:
    """An address of this host that nobody listens on."""
    try:
        with socket.socket() as probe:
            probe.bind((host, 0))
            return f"{host}:{probe.getsockname()[1]}"
    except OSError:
        missing(f"the loopback address {host}")
        raise


@pytest.mark.slow
def test_three_processes(tmp_path: Path, seed: int) -> None:
    """All three end with the same model, and no table has left its folder."""
    write_study(tmp_path, np.random.default_rng(seed))
    addresses = {party: free_address(host) for party, host in zip(PARTIES, HOSTS, strict=True)}
    folders = {}
    for party in PARTIES:
        folders[party] = tmp_path / f"at-{party}"
        folders[party].mkdir()
        (tmp_path / f"{party}.csv").rename(folders[party] / "table.csv")
        if party == PARTIES[0]:
            (tmp_path / "study.toml").rename(folders[party] / "study.toml")
    arguments = [f"{party}={address}" for party, address in addresses.items()]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "no_proxy": ",".join(HOSTS)}
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.parties.institution", party, str(folder), *arguments],
            cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for party, folder in folders.items()
    ]  # fmt: skip
    try:
        started = time.monotonic()
        while not all((folder / "finished").exists() for folder in folders.values()):
            if any(process.poll() is not None for process in running) or time.monotonic() - started > 240:
                break
            time.sleep(0.1)
        for folder in folders.values():
            (folder / "stop").touch()
        for process in running:
            out, error = process.communicate(timeout=150)
            assert process.returncode == 0, error
            assert "Joined 3 releases" in out
    except subprocess.TimeoutExpired:
        pytest.fail("the institutions wait for each other")
    finally:
        for process in running:
            process.kill()
    models = {(folder / "model/model.json").read_bytes() for folder in folders.values()}
    assert len(models) == 1
    for party, folder in folders.items():
        held = {path.name for path in folder.rglob("*.csv")}
        assert held == {"table.csv"}, party
