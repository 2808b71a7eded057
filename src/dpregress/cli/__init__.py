"""The command line: parse, call, print."""

from dpregress.cli.main import main

__all__ = ["main"]
