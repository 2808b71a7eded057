"""A warning for private fits in loops and searches whose spending no ledger adds up."""

from __future__ import annotations

import sys
import threading
import warnings

from dpregress.errors import UnrecordedSpendingWarning

_PACKAGE = "dpregress."
#: Lines of code that have fitted without a ledger. None once the warning is given: it comes once in a process.
_lines: set[tuple[str, int]] | None = set()
_lock = threading.Lock()


def note_unrecorded_fit() -> None:
    """Warn, once in a process, when the same line of a caller's code fits a second time without a ledger.

    A loop does so, and so do ``GridSearchCV``, ``cross_val_score`` and their like, which fit from one line of
    scikit-learn's.
    """
    global _lines
    frame, depth = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        frame, depth = frame.f_back, depth + 1
    line = (frame.f_code.co_filename, frame.f_lineno)
    with _lock:
        if _lines is None:
            return
        if line not in _lines:
            _lines.add(line)
            return
        _lines = None
    warnings.warn(
        "several private fits without a ledger: in a loop, a search or a cross-validation each fit spends its whole "
        "budget, and nothing adds it up; give ledger=, such as MemoryLedger(ApproxDP(3.0, 1e-6))",
        UnrecordedSpendingWarning,
        stacklevel=depth + 1,
    )
