"""How properties are checked: by examples, never by the clock."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

#: A slow machine must not fail a test, and a folder made once serves every example (each writes its file anew).
untimed = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture], max_examples=100
)
