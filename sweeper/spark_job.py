"""The Spark batch job of a sweep: one task a partition of the wait topic."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from sweeper.partition_result import PartitionResult
from sweeper.partition_sweep import sweep_partitions
from sweeper.wait_topic import WaitTopic
from wait_registry.errors import TransientError, WaitRegistryError
from wait_registry.settings.root import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

Job = Callable[[Settings, WaitTopic, Sequence[int]], list[PartitionResult]]

SHOWN_CHARACTERS = 2_000


class SparkGone(WaitRegistryError):
    """Spark's JVM has ended or doesn't answer: end this process, whoever supervises it starts it again."""


class SweepJobFailed(TransientError):
    """The job as a whole failed: a worker was lost, or could not be started. The next sweep tries again."""


class SparkJob:
    """Runs sweeps in one Spark session, which is started when it is first needed or asked for."""

    def __init__(self, settings: Settings, session: SparkSession | None = None) -> None:
        """Start nothing yet; a session that is given is neither configured nor stopped."""
        self._settings = settings
        self._session = session
        self._own = session is None
        self._tag = f"waitreg-sweep-{id(self)}"

    def start(self) -> SparkSession:
        """Return the session, started if need be.

        Raises:
            ConfigurationError: Java or a jar is missing; mend it.
            TransientError: the JVM was killed while it started; start again.
        """
        if self._session is None:
            from wait_registry.spark.session import spark_session

            self._session = spark_session(self._settings, "waitreg-sweeper")
        return self._session

    def __call__(self, settings: Settings, topic: WaitTopic, partitions: Sequence[int]) -> list[PartitionResult]:
        """Sweep partitions, as many at a time as Spark has cores.

        The tasks have a single try each (spark.task.maxFailures=1): a second one would be safe, since it would begin
        at the fence, but it is the next sweep's.

        Raises:
            SweepJobFailed: nothing is known of the partitions; the next sweep begins them anew.
            SparkGone: end the process.
            ConfigurationError: Spark can't be started.
        """
        from py4j.protocol import Py4JError, Py4JJavaError

        context = self.start().sparkContext
        context.addJobTag(self._tag)
        context.setJobDescription(f"sweep of {len(partitions)} partitions of {topic.identity.topic}")
        tasks = context.parallelize(partitions, len(partitions)).mapPartitions(
            partial(sweep_partitions, settings, topic)
        )
        try:
            results: list[PartitionResult] = tasks.collect()
        except Py4JJavaError as error:
            raise SweepJobFailed(f"the sweep's Spark job failed: {error.java_exception}"[:SHOWN_CHARACTERS]) from None
        except (Py4JError, OSError, EOFError) as error:
            raise _gone(error) from error
        return results

    def require_alive(self) -> None:
        """Ask the JVM whether it still works, so that its end shows before something is due; raises `SparkGone`."""
        from py4j.protocol import Py4JError

        if self._session is None:
            return
        try:
            stopped = self._session.sparkContext._jsc.sc().isStopped()
        except (Py4JError, OSError, EOFError) as error:
            raise _gone(error) from error
        if stopped:
            raise SparkGone("Spark has stopped its context: end, to be started again")

    def give_up(self) -> None:
        """Have the job that runs, if one does, fail at once; from any thread."""
        from py4j.protocol import Py4JError

        if self._session is None:
            return
        try:
            self._session.sparkContext.cancelJobsWithTag(self._tag)
        except (Py4JError, OSError, EOFError) as error:
            log.warning("the sweep's Spark job could not be cancelled: %s", error)

    def stop(self) -> None:
        """End the session, if it is ours; one whose JVM is gone has ended already."""
        from wait_registry.spark.session import stop_session

        if not self._own or self._session is None:
            return
        stop_session(self._session)
        self._session = None


def _gone(error: Exception) -> SparkGone:
    return SparkGone(f"Spark's JVM is gone ({type(error).__name__}: {error}): end, to be started again")
