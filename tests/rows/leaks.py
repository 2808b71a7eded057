"""What an exception says, to whoever sees its traceback."""

from __future__ import annotations

import traceback


def everything_said(error: BaseException) -> str:
    """Messages and notes of the error and of everything it came from, as a traceback prints them."""
    return "".join(traceback.format_exception(error))
