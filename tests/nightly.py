"""Run the long tests once, and everything that takes a seed at many fresh ones.

    python -m tests.nightly [--seeds 20] [--first SEED] [-n WORKERS]

Every seed is printed before its run. A failure is a wrong claim, not bad luck: statistical tests fail with probability
1e-6 at most. Repeat it with ``DPREGRESS_TEST_SEED=SEED`` and ``--hypothesis-profile=fresh --hypothesis-seed=SEED``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys


def run(marks: str, workers: str, seed: int | None = None) -> bool:
    """One run of pytest; whether all passed."""
    command = [sys.executable, "-m", "pytest", "-n", workers, "-m", marks]
    environment = dict(os.environ)
    if seed is not None:
        command += ["--hypothesis-profile=fresh", f"--hypothesis-seed={seed}"]
        environment["DPREGRESS_TEST_SEED"] = str(seed)
    return subprocess.run(command, env=environment, check=False).returncode == 0


def main() -> None:
    """Exit with 1 if any run failed, naming the seeds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20, help="how many seeds")
    parser.add_argument("--first", type=int, help="the first seed, others follow it; fresh ones by default")
    parser.add_argument("-n", "--workers", default="2", help="processes of pytest-xdist")
    asked = parser.parse_args()
    failed = [] if run("once or (not seeded and not nightly)", asked.workers) else ["what takes no seed"]
    for turn in range(asked.seeds):
        seed = int.from_bytes(os.urandom(4), "big") if asked.first is None else asked.first + turn
        print(f"seed {seed} ({turn + 1} of {asked.seeds})", flush=True)
        if not run("(seeded or nightly) and not once", asked.workers, seed):
            failed.append(f"seed {seed}")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")
    print(f"all passed at {asked.seeds} seeds")


if __name__ == "__main__":
    main()
