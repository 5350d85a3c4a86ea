"""Sweeps one partition to its end and tells what came of it; this is what Spark's tasks run."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from sweeper.export import PartitionExport, TopicChanged
from sweeper.partition_result import PartitionResult, Skip
from sweeper.position import PositionTooOld
from sweeper.tail import TailTooLong
from sweeper.tail_reader import OpenTransaction
from sweeper.task_tracing import task_tracer
from sweeper.view import UNAVAILABLE
from sweeper.wait_topic import WaitTopic
from wait_registry.errors import ConfigurationError, FencedError, TransientError
from wait_registry.gc_tuning import tune_gc
from wait_registry.logs import configure_logging
from wait_registry.postgres.connection import PostgresRefused
from wait_registry.postgres.error_text import error_text
from wait_registry.settings.root import Settings
from wait_registry.telemetry.tracing import Tracer

log = logging.getLogger(__name__)

_SKIPS: tuple[tuple[type[Exception], Skip], ...] = (
    (FencedError, Skip.FENCED),
    (OpenTransaction, Skip.OPEN_TRANSACTION),
    (TailTooLong, Skip.TAIL_TOO_LONG),
    (PositionTooOld, Skip.POSITION_TOO_OLD),
    (TopicChanged, Skip.TOPIC_CHANGED),
    (TransientError, Skip.UNAVAILABLE),
    # Postgres has let the driver in, or there would be no task.
    (PostgresRefused, Skip.UNAVAILABLE),
    (ConfigurationError, Skip.REFUSED),
    *((kind, Skip.UNAVAILABLE) for kind in UNAVAILABLE),
)


def sweep_partitions(settings: Settings, topic: WaitTopic, partitions: Iterable[int]) -> Iterator[PartitionResult]:
    """Sweep partitions one after another, in a worker process of Spark.

    Args:
        settings: of the sweep; secrets included, so neither logged nor printed.
        topic: the wait topic as the driver found it.
        partitions: of the wait topic.

    Returns:
        A result each.
    """
    configure_logging(settings.log, "sweeper")
    tune_gc()
    with task_tracer(settings.telemetry) as tracer:
        for partition in partitions:
            yield sweep_partition(settings, topic, partition, tracer)


def sweep_partition(
    settings: Settings, topic: WaitTopic, partition: int, tracer: Tracer | None = None
) -> PartitionResult:
    """Sweep one partition from its fence to its last due row, or to the first error."""
    export: PartitionExport | None = None
    try:
        export = PartitionExport(settings, topic, partition, tracer=tracer)
        export.fence()
        export.view()
        export.tail()
        export.confirm()
        while export.chunk():
            pass
        return export.result()
    except Exception as error:  # noqa: BLE001 - one partition's trouble, whatever it is, must not hold back the others
        skip, reason = skip_of(error, partition), error_text(error)
        return PartitionResult(partition, skip=skip, reason=reason) if export is None else export.result(skip, reason)
    finally:
        if export is not None:
            export.close()


def skip_of(error: Exception, partition: int) -> Skip:
    """Return what an error means for its partition; one that nobody foresaw is logged with its traceback."""
    for kind, skip in _SKIPS:
        if isinstance(error, kind):
            return skip
    log.error("partition %d failed", partition, exc_info=error)
    return Skip.FAILED
