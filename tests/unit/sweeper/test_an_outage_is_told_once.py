"""P8: an outage is told when it begins, now and then, and when it is over; not at every sweep."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import pytest

from sweeper.instruments import Instruments
from sweeper.outage import REMINDER_S
from sweeper.sweep import SweepResult, swept
from wait_registry.telemetry.exposition import MetricsRegistry

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DONE = swept("waits", NOW, 1.0, 0, ())


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Return level and text of what has been logged since."""
    lines = [(record.levelname, record.getMessage()) for record in caplog.records]
    caplog.clear()
    return lines


def test_its_begin_its_reminders_and_its_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    now_s, registry = [0.0], MetricsRegistry()
    instruments = Instruments(registry, lambda: now_s[0])

    def sweep_fails(reason: str) -> list[tuple[str, str]]:
        instruments.swept(DONE.ended(SweepResult.FAILED, reason))
        return told(caplog)

    instruments.swept(DONE)
    assert told(caplog) == [("INFO", DONE.in_words())]
    [(level, text)] = sweep_fails("Postgres is away")
    assert level == "ERROR"
    assert "Postgres is away" in text
    for now_s[0] in (30.0, 60.0, REMINDER_S - 1):
        assert sweep_fails("Postgres is away") == []
    now_s[0] = REMINDER_S
    [(level, text)] = sweep_fails("Kafka is away")
    assert level == "ERROR"
    assert "Kafka is away" in text, "as it is now"
    now_s[0] += 30
    assert sweep_fails("Kafka is away") == []
    [(_, text)] = sweep_fails("Postgres at port 5432 is away")
    assert "Postgres at port 5432" in text, "another reason is told at once"
    assert sweep_fails("Postgres at port 5433 is away") == [], "the same one, of another number"

    now_s[0] += 30
    instruments.swept(DONE)
    assert told(caplog) == [
        ("INFO", "sweeps work again: 8 had failed, the first of them 360 s ago"),
        ("INFO", DONE.in_words()),
    ]
    assert [level for level, _ in sweep_fails("Postgres is away")] == ["ERROR"], "the next one is told at once"
    failed = registry.prometheus.get_sample_value("waitreg_sweeper_sweeps_total", {"result": "failed"})
    assert failed == 9, "each is counted"
