"""What a sweeper reports: readiness, and an outage when it starts, at intervals and when it is over (P8)."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from sweeper.health import readiness
from sweeper.metrics import REMINDER_S, Instruments
from sweeper.result import Sweep, SweepResult
from wait_registry.telemetry.exposition import MetricsRegistry

DONE = Sweep("waits", datetime(2026, 1, 1, tzinfo=UTC), 1.0)


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
def test_a_sweep_that_runs_is_ready_for_a_while(running_s: float, interval_s: float, ok: bool) -> None:
    assert readiness(True, None, 2_000.0, interval_s, running_s).ok == ok


def logged(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Return level and text of what has been logged since."""
    lines = [(record.levelname, record.getMessage()) for record in caplog.records]
    caplog.clear()
    return lines


def test_an_outage_is_logged_at_its_start_at_intervals_and_at_its_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    now_s, registry = [0.0], MetricsRegistry()
    instruments = Instruments(registry, lambda: now_s[0])

    def sweep_fails(reason: str) -> list[tuple[str, str]]:
        instruments.swept(replace(DONE, unswept=SweepResult.FAILED, reason=reason))
        return logged(caplog)

    instruments.swept(DONE)
    assert logged(caplog) == [("INFO", DONE.in_words())]
    [(level, text)] = sweep_fails("Postgres is away")
    assert level == "ERROR"
    assert "Postgres is away" in text
    for now_s[0] in (30.0, 60.0, REMINDER_S - 1):
        assert sweep_fails("Postgres is away") == []
    now_s[0] = REMINDER_S
    [(level, text)] = sweep_fails("Kafka is away")
    assert level == "ERROR"
    assert "Kafka is away" in text, "the present reason"
    now_s[0] += 30
    assert sweep_fails("Kafka is away") == []
    [(_, text)] = sweep_fails("Postgres at port 5432 is away")
    assert "Postgres at port 5432" in text, "another reason is logged at once"
    assert sweep_fails("Postgres at port 5433 is away") == [], "the same reason with another number"

    now_s[0] += 30
    instruments.swept(DONE)
    assert logged(caplog) == [
        ("INFO", "sweeps work again: 8 had failed, the first of them 360 s ago"),
        ("INFO", DONE.in_words()),
    ]
    assert [level for level, _ in sweep_fails("Postgres is away")] == ["ERROR"], "the next one is logged at once"
    failed = registry.prometheus.get_sample_value("waitreg_sweeper_sweeps_total", {"result": "failed"})
    assert failed == 9, "each is counted"
