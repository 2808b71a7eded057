"""One institution as a process of its own: it serves what it gives to others on its own address, and fetches theirs.

    python -m tests.parties.institution PARTY FOLDER clinic=HOST:PORT lab=HOST:PORT insurer=HOST:PORT

FOLDER holds its table and the study's terms; nothing else on disk is read. The first party makes the plan.
"""

from __future__ import annotations

import sys
import threading
import time
import urllib.error
import urllib.request
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from dpregress import ApproxDP, SQLiteLedger
from dpregress.cli import main

_PATIENCE = 120.0


class Quiet(SimpleHTTPRequestHandler):
    """Files of one folder, without a log."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        pass


def fetch(address: str, name: str, to: Path) -> None:
    """Get a file from another institution, waiting until it is there."""
    started = time.monotonic()
    while True:
        try:
            with urllib.request.urlopen(f"http://{address}/{name}", timeout=5) as answer:
                to.parent.mkdir(parents=True, exist_ok=True)
                to.write_bytes(answer.read())
                return
        except (urllib.error.URLError, OSError):
            if time.monotonic() - started > _PATIENCE:
                raise
            time.sleep(0.05)


def give(path: Path, outbox: Path) -> None:
    """Put a whole file where others can fetch it."""
    outbox.mkdir(exist_ok=True)
    staged = outbox / (path.name + ".part")
    staged.write_bytes(path.read_bytes())
    staged.rename(outbox / path.name)


def take_part(party: str, folder: Path, addresses: dict[str, str]) -> None:
    """All steps of one institution, which then serves until it is told to stop."""
    names = list(addresses)
    outbox, shared, exchange = folder / "outbox", folder / "shared", folder / "exchange"
    outbox.mkdir()
    host, port = addresses[party].split(":")
    server = ThreadingHTTPServer((host, int(port)), partial(Quiet, directory=str(outbox)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    others = [name for name in names if name != party]
    key, plan = folder / "alignment.key", shared / "plan.json"
    if party == names[0]:
        main(["vertical", "plan", str(folder / "study.toml"), "--key", str(key), "--out", str(shared)])
        give(key, outbox)
        give(plan, outbox)
    else:
        fetch(addresses[names[0]], "alignment.key", key)
        fetch(addresses[names[0]], "plan.json", plan)
    secrets = ["--party", party, "--keys", str(folder / "keys")]
    main(["vertical", "sign", str(plan), *secrets])
    give(shared / f"{party}.signature.json", outbox)
    for other in others:
        fetch(addresses[other], f"{other}.signature.json", shared / f"{other}.signature.json")
    data = str(folder / "table.csv")
    align = [str(plan), data, *secrets, "--key", str(key), "--exchange", str(exchange)]
    main(["vertical", "align", *align])
    give(exchange / f"{party}.pseudonyms.json", outbox)
    for other in others:
        fetch(addresses[other], f"{other}.pseudonyms.json", exchange / f"{other}.pseudonyms.json")
    SQLiteLedger.create(folder / "budget.db", party, ApproxDP(10.0, 1e-6))
    main(
        ["vertical", "release", *align, "--ledger", str(folder / "budget.db"), "--dataset", party, "--out", str(outbox)]
    )
    for name in names:  # everybody is an analyst here
        fetch(addresses[name], f"{name}.release.json", folder / "public" / f"{name}.release.json")
    files = [str(folder / "public" / f"{name}.release.json") for name in names]
    main(["vertical", "join", str(plan), *files, "--out", str(folder / "public")])
    main(["vertical", "fit", str(folder / "public/joint.json"), "--target", "cost", "--out", str(folder / "model")])
    sys.stdout.flush()
    (folder / "finished").touch()
    while not (folder / "stop").exists():  # others may still fetch from here
        time.sleep(0.05)
    server.shutdown()


if __name__ == "__main__":
    take_part(sys.argv[1], Path(sys.argv[2]), dict(word.split("=") for word in sys.argv[3:]))
