"""``--help`` of benchmarks that read their words themselves."""

from __future__ import annotations

import sys


def answer_help(about: str | None) -> None:
    """Print what a module says of itself and end, where ``--help`` is asked.

    Parameters
    ----------
    about : str or None
        The module's docstring.
    """
    if {"-h", "--help"} & set(sys.argv[1:]):
        print((about or "").strip())
        raise SystemExit
