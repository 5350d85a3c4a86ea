"""What a sweep counts and says, and what a sweeper reports: readiness, outages, backlog."""

from __future__ import annotations

import logging
import socket
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from unittest.mock import MagicMock

import orjson
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from sweeper.alerts.counting import Counting, Counts
from sweeper.alerts.watch import AlertWatch
from sweeper.alerts.webhook import Undelivered
from sweeper.counted_metrics import OTHERS, bounded
from sweeper.counted_metrics_watch import CountedMetricsWatch
from sweeper.export_decision import Obstacle, Unsendable
from sweeper.health import readiness
from sweeper.housekeeping import marks_days
from sweeper.metrics import Instruments
from sweeper.periods import pause_after
from sweeper.postgres_liveness import LATE_S, PostgresLiveness
from sweeper.result import PartitionResult, RowOutcome, Skip, Sweep, SweepResult
from tests.support.running_thread import RunningThread
from tests.support.waiting import wait_until
from wait_registry.postgres.open_connections import OpenConnections
from wait_registry.repeats import REMINDER_S
from wait_registry.settings.alerts import AlertsSettings
from wait_registry.settings.postgres import PostgresSettings
from wait_registry.settings.redrive import OperationsSettings
from wait_registry.settings.sweeper import SweeperSettings
from wait_registry.settings.topics import DAY_MS
from wait_registry.settings.tree import Settings
from wait_registry.telemetry.exposition import MetricsRegistry

AT = datetime(2026, 11, 21, 2, 20, tzinfo=UTC)
OLD = PartitionResult(1, skip=Skip.POSITION_TOO_OLD, reason="too old")
FENCED = PartitionResult(0, skip=Skip.FENCED, reason="another")
EXPORTED = PartitionResult(2, Counter({RowOutcome.EXPORTED: 1}))


def swept_now(*results: PartitionResult) -> Sweep:
    return Sweep("wait", AT, 1.5, 12, results)


def test_partitions_are_added_up() -> None:
    first = Counter({RowOutcome.EXPORTED: 3, RowOutcome.REDELIVERED: 1, RowOutcome.SUPERSEDED: 2, RowOutcome.UNSEEN: 1})
    second = Counter({RowOutcome.EXPORTED: 4, RowOutcome.SUPERSEDED: 1})
    sweep = swept_now(PartitionResult(0, first), PartitionResult(1, second))
    assert sweep.counts == first + second
    assert sweep.result is SweepResult.DONE
    assert sweep.in_words() == "sweep done in 1.500 s: due 12, exported 7, redelivered 1, superseded 3, unseen 1"
    one = swept_now(PartitionResult(1, second))
    assert one.in_words().endswith("due 12, exported 4, superseded 1, ended meanwhile 7")


def test_every_outcome_is_in_the_words_and_fields() -> None:
    sweep = swept_now(PartitionResult(0, Counter(dict.fromkeys(RowOutcome, 2))))
    assert [outcome for outcome in RowOutcome if f"{outcome.value} 2" not in sweep.in_words()] == []
    assert [outcome for outcome in RowOutcome if sweep.as_fields()[outcome.value] != 2] == []


def test_skipped_partitions_and_unsendable_rows_make_a_sweep_partial() -> None:
    skipped = swept_now(PartitionResult(4, skip=Skip.OPEN_TRANSACTION, reason="open at 7"))
    assert skipped.result is SweepResult.PARTIAL
    assert skipped.as_fields()["skipped"] == [{"partition": 4, "skip": "open_transaction", "reason": "open at 7"}]
    row = Unsendable("id", "orders", 0, 1, Obstacle.TOO_LARGE, "too large")
    unsendable = swept_now(PartitionResult(4, Counter({RowOutcome.UNSENDABLE: 1}), named=(row,)))
    assert unsendable.result is SweepResult.PARTIAL


def test_its_fields_are_plain_json() -> None:
    fields = replace(swept_now(), unswept=SweepResult.SKIPPED, reason="another sweep").as_fields()
    read = orjson.loads(orjson.dumps(fields))
    assert (read["started_at"], read["result"], read["reason"]) == (
        "2026-11-21T02:20:00.000Z", "skipped", "another sweep")  # fmt: skip


@pytest.mark.parametrize(
    ("results", "trouble"), [([FENCED, OLD], "too old"), ([OLD, EXPORTED], None), ([FENCED], None), ([], None)]
)
def test_a_sweep_that_skipped_every_partition_is_in_trouble(results: list[PartitionResult], trouble: str) -> None:
    assert swept_now(*results).trouble() == trouble
    assert replace(swept_now(*results), unswept=SweepResult.FAILED, reason="away").trouble() == "away"


COUNTS = st.dictionaries(st.tuples(st.text("ab", max_size=2), st.text("ab", max_size=2)), st.integers(0, 9).map(float))


@given(COUNTS, st.integers(0, 12))
def test_the_largest_counts_are_kept_and_nothing_is_lost(counts: dict[tuple[str, ...], float], most: int) -> None:
    found = dict(bounded(counts.items(), float.__add__, most))
    kept = {labels: count for labels, count in found.items() if labels != (OTHERS, OTHERS)}
    assert len(kept) == min(most, len(counts))
    assert kept.items() <= counts.items()
    assert sum(found.values()) == sum(counts.values())
    smallest = min(kept.values(), default=0)
    assert all(count <= smallest for labels, count in counts.items() if labels not in kept) or not kept


def test_ages_are_merged_to_the_largest() -> None:
    ages = {("a",): 5.0, ("b",): 3.0, ("c",): 2.0}
    assert dict(bounded(ages.items(), max, 1)) == {("a",): 5.0, (OTHERS,): 3.0}


@pytest.mark.parametrize(("took_s", "pause_s"), [(0.0, 30.0), (1.5, 30.0), (3.0, 60.0), (60.0, 1200.0)])
def test_a_reading_that_takes_long_is_repeated_later(took_s: float, pause_s: float) -> None:
    assert pause_after(took_s) == pause_s


@pytest.mark.parametrize(
    ("retention_ms", "retention_days", "days"),
    [(400 * DAY_MS, 30, 401), (10 * DAY_MS + 1, 30, 30), (40 * DAY_MS + 1, 30, 41), (-1, 30, None)],
)
def test_marks_are_kept_as_long_as_in_their_topic(retention_ms: int, retention_days: int, days: int | None) -> None:
    settings = Settings(
        operations=OperationsSettings(retention_ms=retention_ms), sweeper=SweeperSettings(retention_days=retention_days)
    )
    assert marks_days(settings) == days


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
    [(level, text)] = sweep_fails("permission denied for table wait_1")
    assert (level, "permission denied" in text) == ("ERROR", True), "another reason is logged at once"
    assert sweep_fails("permission denied for table wait_2") == [], "the same reason with another number"
    instruments.swept(DONE)
    assert logged(caplog) == [("INFO", "sweeps work again (failures: 8)"), ("INFO", DONE.in_words())]
    assert [level for level, _ in sweep_fails("Postgres is away")] == ["ERROR"], "the next one is logged at once"
    failed = registry.prometheus.get_sample_value("waitreg_sweeper_sweeps_total", {"result": "failed"})
    assert failed == 9, "each is counted"


Work = Callable[[str], object]


def counting(patch: pytest.MonkeyPatch) -> Work:
    """Return a counting of dead letters that fails for a reason, or succeeds with ""."""
    connections, left = OpenConnections(), deque[str]()

    def read(*_: object) -> tuple[()]:
        if reason := left.popleft():
            raise psycopg.Error(reason)
        return ()

    patch.setattr(connections, "open", lambda *_: nullcontext(MagicMock()))
    patch.setattr("sweeper.counted_metrics_watch.read_counted_metrics", read)
    watch = CountedMetricsWatch(Settings(), connections)
    return lambda reason: (left.append(reason), watch.read_once())


def alerting(patch: pytest.MonkeyPatch, counts: Callable[[str], Counts], post: Callable[[str], object]) -> Work:
    now_s, reasons = [0.0], [""]
    patch.setattr(Counting, "counts", lambda *_: counts(reasons[-1]))
    patch.setattr("sweeper.alerts.watch.post", lambda *_: post(reasons[-1]))
    alerts = AlertsSettings.model_validate({"rule": [{"name": "any"}], "webhook": {"url": "http://receiver"}})
    watch = AlertWatch(Settings(alerts=alerts), OpenConnections(), lambda: now_s[0], lambda: now_s[0])

    def work(reason: str) -> None:
        reasons.append(reason)
        watch.run_once()
        now_s[0] += REMINDER_S - 1

    return work


def evaluating(patch: pytest.MonkeyPatch) -> Work:
    """Return an evaluation of alert rules, as `counting`."""
    return alerting(patch, lambda reason: Counts({"any": 0}, reason), lambda _: None)


def delivering(patch: pytest.MonkeyPatch) -> Work:
    """Return a delivery of an alert, as `counting`."""
    return alerting(patch, lambda _: Counts({"any": 1}), lambda reason: Undelivered(reason, True) if reason else None)


@pytest.mark.parametrize("kind", [counting, evaluating, delivering])
def test_each_kind_of_failure_is_logged_at_once(
    kind: Callable[[pytest.MonkeyPatch], Work], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "sweeper")
    work = kind(monkeypatch)
    for reason in ("away for 1 s", "away for 2 s", "it answered with status 401", "it answered with status 403", ""):
        work(reason)
    lines = [(level, text.rpartition(": ")[2]) for level, text in logged(caplog)]
    assert lines == [
        ("WARNING", "away for 1 s"),
        ("WARNING", "it answered with status 401"),
        ("WARNING", "it answered with status 403"),
        ("INFO", "4)"),
    ]


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A port whose kernel accepts connections, and behind which no server answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def test_a_postgres_that_does_not_answer_is_trouble(silent: socket.socket) -> None:
    port = silent.getsockname()[1]
    postgres = PostgresSettings(url=SecretStr(f"postgresql://127.0.0.1:{port}/none"), connect_timeout_s=300)
    connections, now = OpenConnections(), [0.0]
    watch = PostgresLiveness(Settings(postgres=postgres), connections, lambda: now[0])
    assert watch.trouble() is None
    asking = RunningThread(watch.ask_once)
    accepted, _ = silent.accept()
    now[0] = LATE_S + 1
    wait_until(lambda: watch.trouble() == "Postgres hasn't answered for 11 s", what="the trouble")
    assert not readiness(True, None, 1.0, 60.0, None, watch.trouble()).ok
    accepted.close()
    asking.wait_ended()
    assert watch.trouble() not in (None, "Postgres hasn't answered for 11 s"), "the failure"
