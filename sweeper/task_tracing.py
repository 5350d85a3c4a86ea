"""Tracing in Spark's tasks: one tracer per worker process, since each new one would wait for a silent collector."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from wait_registry.errors import ConfigurationError
from wait_registry.settings.runtime import TelemetrySettings
from wait_registry.telemetry.tracing import Tracer, start_tracing

log = logging.getLogger(__name__)


@contextmanager
def task_tracer(settings: TelemetrySettings) -> Iterator[Tracer | None]:
    """Give a task this process's tracer, and flush it when the task ends.

    Args:
        settings: of the sweep.

    Returns:
        None if tracing is off, or refuses its settings here; exports don't depend on it.
    """
    tracer = _tracer(settings)
    try:
        yield tracer
    finally:
        try:
            if tracer is not None:
                tracer.flush()
        except Exception as error:  # noqa: BLE001 - any failure costs spans and no export
            log.warning("the spans of a task could not be sent: %s", type(error).__name__)


@lru_cache(maxsize=1)
def _tracer(settings: TelemetrySettings) -> Tracer | None:
    try:
        return start_tracing(settings, "sweeper")
    except ConfigurationError as error:
        log.warning("sweeping without traces: %s", error)
        return None
