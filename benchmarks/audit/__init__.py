"""Whole fits, attacked by somebody who knows every other row: how much of a claimed guarantee an attack reaches.

    python -m benchmarks.audit [--cells "NAME;.."] [--runs 10000] [--seconds 3600] [--anew] [--out audit.json]
    python -m benchmarks.audit --page docs/privacy/audit.md     (only rewrites the table of that page)

The first command finds the worst pair of neighbouring tables for each cell, and then runs fits on one or the other,
whichever a coin says. It goes on where it stopped. docs/privacy/audit.md explains the figures.
"""
