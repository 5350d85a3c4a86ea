"""Errors of a partition are its result alone; tasks of one process share a tracer, without which they sweep too."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from sweeper.export import Held
from sweeper.result import Skip
from sweeper.service import SweeperService
from sweeper.sweep_task import skip_of, sweep_partition, task_tracer
from sweeper.tables_policy import Scope
from sweeper.tail import PositionOvertaken, TailTooLong
from sweeper.wait_topic import WaitTopic
from wait_registry.errors import ConfigurationError, FencedError, PermanentError, TransientError
from wait_registry.kafka.cluster import TopicIdentity
from wait_registry.kafka.tail_reader import OpenTransaction
from wait_registry.postgres.connection import PostgresRefused
from wait_registry.settings.runtime import TelemetrySettings
from wait_registry.settings.tree import Settings

ON = TelemetrySettings(traces=True, traces_endpoint="http://127.0.0.1:1/v1/traces")


@pytest.mark.parametrize(
    ("error", "skip"),
    [
        (FencedError("another"), Skip.FENCED),
        (OpenTransaction("open"), Skip.OPEN_TRANSACTION),
        (TailTooLong("long"), Skip.TAIL_TOO_LONG),
        (PositionOvertaken("old"), Skip.POSITION_TOO_OLD),
        (TransientError("away"), Skip.UNAVAILABLE),
        (psycopg.OperationalError("away"), Skip.UNAVAILABLE),
        (PostgresRefused("no such database"), Skip.UNAVAILABLE),  # the driver, which has sent the task, was let in
        (psycopg.errors.ReadOnlySqlTransaction("standby"), Skip.UNAVAILABLE),
        (ConfigurationError("no permission"), Skip.REFUSED),
        (PermanentError("refused"), Skip.FAILED),
        (ZeroDivisionError(), Skip.FAILED),
    ],
)
def test_every_error_of_a_partition_has_its_skip(error: Exception, skip: Skip) -> None:
    assert skip_of(error, 3) is skip


def test_a_client_that_cannot_be_made_skips_its_partition() -> None:
    librdkafka = {"plugin.library.paths": "no-such-library"}
    settings = Settings.model_validate({"kafka": {"bootstrap_servers": "127.0.0.1:1", "librdkafka": librdkafka}})
    result = sweep_partition(Scope(settings, WaitTopic(TopicIdentity("wait", "id", 1), 86_400_000)), 4)
    assert (result.partition, result.skip) == (4, Skip.REFUSED)
    assert "no-such-library" in result.reason


class Part:
    """Something to close, which may fail."""

    def __init__(self, error: Exception | None = None) -> None:
        self.closed = False
        self._error = error

    def close(self) -> None:
        self.closed = True
        if self._error is not None:
            raise self._error


def test_each_part_is_closed_whatever_the_others_do(caplog: pytest.LogCaptureFixture) -> None:
    parts = [Part(ValueError("a broken producer")), Part(ValueError("a broken reader")), Part()]
    with Held() as held:
        for part in parts:
            assert held.keep(part) is part
    assert [part.closed for part in parts] == [True, True, True]
    assert [word for word in ("a broken producer", "a broken reader") if word not in caplog.text] == []


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    # A task with other settings replaces the tracer that is kept.
    with task_tracer(TelemetrySettings()):
        yield
    with task_tracer(TelemetrySettings()):
        pass


def test_a_tracer_is_kept_from_task_to_task() -> None:
    with task_tracer(ON) as first:
        assert first is not None
    with task_tracer(ON) as second:
        assert second is first
    with task_tracer(TelemetrySettings()) as off:
        assert off is None


def test_a_task_without_tracing_logs_it_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "100")
    for _ in range(2):
        with task_tracer(ON) as tracer:
            assert tracer is None
    [logged] = [record.getMessage() for record in caplog.records]
    assert logged.startswith("sweeping without traces") and "max_queue_size" in logged


@pytest.mark.parametrize("once", [False, True])
def test_a_sweeper_whose_tracing_is_refused_does_not_start(monkeypatch: pytest.MonkeyPatch, once: bool) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "100")
    settings = Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": "127.0.0.1:1"},
            "postgres": {"url": "postgresql://user@127.0.0.1:1/none"},
            "telemetry": ON.model_dump(),
        }
    )
    with pytest.raises(ConfigurationError, match="max_queue_size"):
        SweeperService(settings, once=once).run()
