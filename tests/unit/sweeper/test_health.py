"""Ready means that sweeps happen and succeed."""

from __future__ import annotations

import pytest

from sweeper.health import readiness


@pytest.mark.parametrize(
    ("scheduled", "failure", "ago", "reasons"),
    [
        (True, None, 1.0, []),
        (True, None, 149.0, []),
        (True, None, 151.0, ["the last sweep ended 151 s ago"]),
        (True, None, None, ["no sweep has ended yet"]),
        (False, None, 1.0, ["the schedule is not running"]),
        (True, "Postgres can't be reached", 1.0, ["the last sweep failed: Postgres can't be reached"]),
    ],
)
def test_it_is_ready_unless_there_is_a_reason(
    scheduled: bool, failure: str | None, ago: float | None, reasons: list[str]
) -> None:
    health = readiness(scheduled, failure, ago, 30.0)
    assert health.ok == (not reasons)
    assert [text for text, wanted in zip(health.reasons, reasons, strict=True) if not text.startswith(wanted)] == []


@pytest.mark.parametrize(
    ("running_s", "interval_s", "ok"), [(599, 30, True), (601, 30, False), (899, 300, True), (901, 300, False)]
)
def test_a_sweep_that_runs_is_fresh_for_a_while(running_s: float, interval_s: float, ok: bool) -> None:
    assert readiness(True, None, 2_000.0, interval_s, running_s).ok == ok
