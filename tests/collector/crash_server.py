"""A collector that is started and killed many times: imports are done once, every start is a fork.

``python -m tests.collector.crash_server STORE PORT`` prints the process id of a new collector for every line read.
"""

from __future__ import annotations

import os
import sys

from dpregress.collector.server.app import Collector, Settings
from dpregress.collector.server.serving import Address, http_server
from dpregress.collector.store import open_store
from tests.collector.support import ADMIN_KEY


def serve(location: str, port: int) -> None:
    with open_store(location) as store:
        study = store.study
    settings = Settings(ADMIN_KEY, rate=1e9, burst=1e9)
    http_server(Collector(study, lambda: open_store(location), settings), Address(port=port)).run()


def main() -> None:
    location, port = sys.argv[1], int(sys.argv[2])
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                serve(location, port)
            finally:
                os._exit(0)
        print(child, flush=True)
        os.waitpid(child, 0)
        print("ended", flush=True)


if __name__ == "__main__":
    main()
