"""Tracing in Spark's tasks: one tracer a worker process, kept from task to task, and none where it can't be had.

A tracer for each task would wait for a silent receiver at the end of each.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from wait_registry.errors import ConfigurationError
from wait_registry.settings.runtime import TelemetrySettings
from wait_registry.telemetry.tracing import Tracer, start_tracing

log = logging.getLogger(__name__)

# What this process traces with, under the settings that it was made by; a list of at most one.
_kept: list[tuple[TelemetrySettings, Tracer | None]] = []


@contextmanager
def task_tracer(settings: TelemetrySettings) -> Iterator[Tracer | None]:
    """Give a task this process's tracer, and send what the task has traced when it ends.

    Args:
        settings: of the sweep.

    Returns:
        None when tracing is off, or refuses its settings here: that is told once, exports don't depend on it.
    """
    tracer = _tracer(settings)
    try:
        yield tracer
    finally:
        if tracer is not None:
            _flush(tracer)


def _tracer(settings: TelemetrySettings) -> Tracer | None:
    if _kept and _kept[0][0] == settings:
        return _kept[0][1]
    if _kept and _kept[0][1] is not None:
        _kept[0][1].stop()
    try:
        tracer = start_tracing(settings, "sweeper")
    except ConfigurationError as error:
        log.warning("sweeping without traces: %s", error)
        tracer = None
    _kept[:] = [(settings, tracer)]
    return tracer


def _flush(tracer: Tracer) -> None:
    try:
        tracer.flush()
    except Exception as error:  # noqa: BLE001 - whatever it is, it costs spans and no export
        log.warning("the spans of a task could not be sent: %s", type(error).__name__)
