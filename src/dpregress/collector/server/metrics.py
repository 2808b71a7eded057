"""Counters in the text format of Prometheus."""

from __future__ import annotations

from dpregress.collector.admission import REASONS
from dpregress.collector.server.writer import Counters


def metrics_text(counters: Counters, waiting: int, ready: bool) -> str:
    """Reports by outcome since the start, commits and their time, reports that wait, alarms.

    Examples
    --------
    >>> print(metrics_text(Counters(), 0, True).splitlines()[2])
    dpregress_reports_total{outcome="stored"} 0
    """
    outcomes = [
        f'dpregress_reports_total{{outcome="{name}"}} {counters.outcomes[name]}'
        for name in ("stored", "repeated", *REASONS)
    ]
    lines = [
        "# HELP dpregress_reports_total Reports by outcome since the start.",
        "# TYPE dpregress_reports_total counter",
        *outcomes,
    ]
    for name, kind, text, value in (
        ("commits_total", "counter", "Commits since the start.", counters.commits),
        ("commit_seconds_total", "counter", "Seconds in commits since the start.", counters.commit_seconds),
        ("alarms_total", "counter", "Reports with the id of another one, since the start.", counters.alarms),
        ("waiting", "gauge", "Reports that wait for a commit.", waiting),
        ("ready", "gauge", "1 if reports can be stored.", int(ready)),
    ):
        full = f"dpregress_{name}"
        lines += [f"# HELP {full} {text}", f"# TYPE {full} {kind}", f"{full} {value}"]
    return "\n".join(lines) + "\n"
