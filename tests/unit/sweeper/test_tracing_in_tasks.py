"""Tasks of one worker process share a tracer; one that can't be had stops no sweep, but the service's start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sweeper.service import SweeperService
from sweeper.task_tracing import task_tracer
from wait_registry.errors import ConfigurationError
from wait_registry.settings.root import Settings
from wait_registry.settings.runtime import TelemetrySettings

ON = TelemetrySettings(traces=True, traces_endpoint="http://127.0.0.1:1/v1/traces")


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


def test_a_task_whose_tracing_is_refused_goes_on_without_and_says_so_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "100")
    for _ in range(2):
        with task_tracer(ON) as tracer:
            assert tracer is None
    [said] = [record.getMessage() for record in caplog.records]
    assert said.startswith("sweeping without traces") and "max_queue_size" in said


@pytest.mark.parametrize("once", [False, True])
def test_a_sweeper_whose_tracing_is_refused_does_not_start(monkeypatch: pytest.MonkeyPatch, once: bool) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "100")
    settings = Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": "127.0.0.1:1"},
            "postgres": {"url": "postgresql://nobody@127.0.0.1:1/none"},
            "telemetry": ON.model_dump(),
        }
    )
    with pytest.raises(ConfigurationError, match="max_queue_size"):
        SweeperService(settings, once=once).run()
