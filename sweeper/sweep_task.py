"""What a task of Spark does: export partitions one after another, and report each one's result instead of raising."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache

from sweeper.export import Held, Task, fence
from sweeper.result import PartitionResult, Skip
from sweeper.snapshot import UNAVAILABLE
from sweeper.tables_policy import Scope, TopicChanged
from sweeper.tail import PositionOvertaken, TailTooLong
from wait_registry.errors import ConfigurationError, FencedError, TransientError
from wait_registry.kafka.tail_reader import OpenTransaction
from wait_registry.logs import configure_logging
from wait_registry.postgres.connection import PostgresRefused
from wait_registry.postgres.errors import error_text
from wait_registry.service.gc_tuning import tune_gc
from wait_registry.settings.runtime import TelemetrySettings
from wait_registry.telemetry.tracing import Tracer, start_tracing

log = logging.getLogger(__name__)

_SKIPS: tuple[tuple[type[Exception], Skip], ...] = (
    (FencedError, Skip.FENCED),
    (OpenTransaction, Skip.OPEN_TRANSACTION),
    (TailTooLong, Skip.TAIL_TOO_LONG),
    (PositionOvertaken, Skip.POSITION_TOO_OLD),
    (TopicChanged, Skip.TOPIC_CHANGED),
    (TransientError, Skip.UNAVAILABLE),
    # Postgres has accepted the driver, or there would be no task.
    (PostgresRefused, Skip.UNAVAILABLE),
    (ConfigurationError, Skip.REFUSED),
    *((kind, Skip.UNAVAILABLE) for kind in UNAVAILABLE),
)


def sweep_partitions(scope: Scope, partitions: Iterable[int]) -> Iterator[PartitionResult]:
    """Sweep partitions one after another, in a worker process of Spark; arguments as `sweep_partition`."""
    configure_logging(scope.settings.log, "sweeper")
    tune_gc()
    with task_tracer(scope.settings.telemetry) as tracer:
        for partition in partitions:
            yield sweep_partition(scope, partition, tracer)


def sweep_partition(scope: Scope, partition: int, tracer: Tracer | None = None) -> PartitionResult:
    """Sweep one partition from its fence to its last due row, or to the first error.

    Args:
        scope: of the sweep.
        partition: of the wait topic.
        tracer: gets each exported record.
    """
    result = PartitionResult(partition)
    try:
        with Held() as held:
            task = Task(scope, partition, held, tracer)
            for chunk in fence(task).snapshot().read_tail().chunks():
                result.counts.update(chunk.counts)
                result.name(chunk.unsendable)
                result.counts.update(chunk.export())
    except Exception as error:  # noqa: BLE001 - the trouble of one partition must not hold up the others
        result.skipped(skip_of(error, partition), error_text(error))
    return result


def skip_of(error: Exception, partition: int) -> Skip:
    """Return what an error means for its partition; an unforeseen one is logged with its traceback."""
    for kind, skip in _SKIPS:
        if isinstance(error, kind):
            return skip
    log.error("partition %d failed", partition, exc_info=error)
    return Skip.FAILED


@contextmanager
def task_tracer(settings: TelemetrySettings) -> Iterator[Tracer | None]:
    """Give a task this process's tracer, and flush it when the task ends.

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
            log.warning("could not send the spans of a task: %s", type(error).__name__)


@lru_cache(maxsize=1)  # one per process, since each new one would wait for a silent collector
def _tracer(settings: TelemetrySettings) -> Tracer | None:
    try:
        return start_tracing(settings, "sweeper")
    except ConfigurationError as error:
        log.warning("sweeping without traces: %s", error)
        return None
