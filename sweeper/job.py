"""The work of a sweep: Spark runs one task per partition of the wait topic, and each task exports its partition."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from sweeper.export import Held, Task, fence
from sweeper.result import NAMED_UNSENDABLE, PartitionResult, Skip
from sweeper.snapshot import UNAVAILABLE
from sweeper.tables import ProgressPolicy, TablesPolicy, TopicChanged
from sweeper.tail import PositionOvertaken, TailTooLong
from sweeper.tail_reader import OpenTransaction
from sweeper.wait_topic import WaitTopic
from wait_registry.errors import ConfigurationError, FencedError, TransientError
from wait_registry.gc_tuning import tune_gc
from wait_registry.logs import configure_logging
from wait_registry.postgres.connection import PostgresRefused
from wait_registry.postgres.error_text import error_text
from wait_registry.settings.root import Settings
from wait_registry.settings.runtime import TelemetrySettings
from wait_registry.spark import jvm_gone
from wait_registry.telemetry.tracing import Tracer, start_tracing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

Job = Callable[[Settings, WaitTopic, Sequence[int]], list[PartitionResult]]

SHOWN_CHARACTERS = 2_000

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


class SweepJobFailed(TransientError):
    """The job as a whole failed: a worker was lost, or could not be started. The next sweep tries again."""


class SparkJob:
    """Runs sweeps in one Spark session, which is started when it is first needed or asked for."""

    def __init__(
        self, settings: Settings, session: SparkSession | None = None, tables: TablesPolicy | None = None
    ) -> None:
        """Start nothing yet.

        Args:
            settings: of the sweeper.
            session: one to use, neither configured nor stopped here.
            tables: what may be assumed of the tables; `ProgressPolicy` when not given.
        """
        self._settings = settings
        self._tables = tables or ProgressPolicy()
        self._session = session
        self._own = session is None
        self._tag = f"waitreg-sweep-{id(self)}"

    def start(self) -> SparkSession:
        """Return the session, started if need be.

        Raises:
            ConfigurationError: Java or a jar is missing; fix it.
            TransientError: the JVM was killed while it started; start again.
        """
        if self._session is None:
            from wait_registry.spark.session import spark_session

            self._session = spark_session(self._settings, "waitreg-sweeper")
        return self._session

    def __call__(self, settings: Settings, topic: WaitTopic, partitions: Sequence[int]) -> list[PartitionResult]:
        """Sweep partitions, as many at a time as Spark has cores.

        Spark runs each task once (spark.task.maxFailures=1): a second run would be safe, since it would start at the
        fence, but that is the next sweep's.

        Raises:
            SweepJobFailed: nothing is known of the partitions; the next sweep starts them again.
            SparkGone: end the process.
            ConfigurationError: Spark can't be started.
        """
        from py4j.protocol import Py4JError, Py4JJavaError

        context = self.start().sparkContext
        context.addJobTag(self._tag)
        context.setJobDescription(f"sweep of {len(partitions)} partitions of {topic.identity.topic}")
        tasks = context.parallelize(partitions, len(partitions)).mapPartitions(
            partial(sweep_partitions, settings, topic, self._tables)
        )
        try:
            results: list[PartitionResult] = tasks.collect()
        except Py4JJavaError as error:
            raise SweepJobFailed(f"the sweep's Spark job failed: {error.java_exception}"[:SHOWN_CHARACTERS]) from None
        except (Py4JError, OSError, EOFError) as error:
            raise jvm_gone(error) from error
        return results

    def require_alive(self) -> None:
        """Ask the JVM whether it still works, so that its end is noticed before rows are due.

        Raises:
            SparkGone: it has ended.
        """
        if self._session is not None:
            from wait_registry.spark.session import require_spark

            require_spark(self._session)

    def give_up(self) -> None:
        """Make the job that runs, if one does, fail at once; from any thread."""
        from py4j.protocol import Py4JError

        if self._session is None:
            return
        try:
            self._session.sparkContext.cancelJobsWithTag(self._tag)
        except (Py4JError, OSError, EOFError) as error:
            log.warning("could not cancel the sweep's Spark job: %s", error)

    def stop(self) -> None:
        """End the session, unless it was given; one whose JVM is gone has ended already."""
        from wait_registry.spark.session import stop_session

        if not self._own or self._session is None:
            return
        stop_session(self._session)
        self._session = None


def sweep_partitions(
    settings: Settings, topic: WaitTopic, tables: TablesPolicy, partitions: Iterable[int]
) -> Iterator[PartitionResult]:
    """Sweep partitions one after another, in a worker process of Spark.

    Args:
        settings: of the sweep; they hold secrets, so they are neither logged nor printed.
        topic: the wait topic as the driver found it.
        tables: what may be assumed of the tables.
        partitions: of the wait topic.

    Returns:
        One result per partition.
    """
    configure_logging(settings.log, "sweeper")
    tune_gc()
    with task_tracer(settings.telemetry) as tracer:
        for partition in partitions:
            yield sweep_partition(settings, topic, partition, tables, tracer)


def sweep_partition(
    settings: Settings,
    topic: WaitTopic,
    partition: int,
    tables: TablesPolicy | None = None,
    tracer: Tracer | None = None,
) -> PartitionResult:
    """Sweep one partition from its fence to its last due row, or to the first error.

    Args:
        settings: of the sweep.
        topic: the wait topic as the sweep found it.
        partition: of the wait topic.
        tables: what may be assumed of the tables; `ProgressPolicy` when not given.
        tracer: gets each exported record.
    """
    result = PartitionResult(partition)
    try:
        with Held() as held:
            task = Task(settings, topic, partition, held, tables or ProgressPolicy(), tracer)
            for chunk in fence(task).snapshot().read_tail().chunks():
                result.counts.update(chunk.counts)
                result.named = (*result.named, *chunk.unsendable)[:NAMED_UNSENDABLE]
                result.counts.update(chunk.export())
    except Exception as error:  # noqa: BLE001 - the trouble of one partition must not hold up the others
        result.skip, result.reason = skip_of(error, partition), error_text(error)
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
            log.warning("could not send the spans of a task: %s", type(error).__name__)


@lru_cache(maxsize=1)  # one per process, since each new one would wait for a silent collector
def _tracer(settings: TelemetrySettings) -> Tracer | None:
    try:
        return start_tracing(settings, "sweeper")
    except ConfigurationError as error:
        log.warning("sweeping without traces: %s", error)
        return None
