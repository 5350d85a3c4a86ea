"""The work of a sweep as one Spark job, which runs a task per partition of the wait topic."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from threading import Event

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sweeper.result import PartitionResult
from sweeper.sweep_task import sweep_partitions
from sweeper.tables_policy import Scope
from wait_registry.errors import TransientError
from wait_registry.settings.tree import Settings
from wait_registry.spark import jvm_gone
from wait_registry.spark.session import require_spark, spark_session, stop_session

log = logging.getLogger(__name__)

SHOWN_CHARACTERS = 2_000


class SweepJobFailed(TransientError):
    """The job as a whole failed: a worker was lost, or could not be started. The next sweep tries again."""


class SparkJob:
    """Runs sweeps in one Spark session, which is started when it is first needed or asked for."""

    def __init__(self, settings: Settings, session: SparkSession | None = None, stop: Event | None = None) -> None:
        """Start nothing yet; a given session is neither configured nor stopped here, ``stop`` gives a start up."""
        self._settings = settings
        self._session = session
        self._own = session is None
        self._stop = stop
        self._tag = f"waitreg-sweep-{id(self)}"

    def start(self) -> SparkSession:
        """Return the session, started if need be; errors as `spark_session`."""
        if self._session is None:
            self._session = spark_session(self._settings, "waitreg-sweeper", self._stop)
        return self._session

    def __call__(self, scope: Scope, partitions: Sequence[int]) -> list[PartitionResult]:
        """Sweep partitions, as many at a time as Spark has cores.

        Spark runs each task once (spark.task.maxFailures=1): a second run would be safe, since it would start at the
        fence, but that is the next sweep's.

        Raises:
            SweepJobFailed: nothing is known of the partitions; the next sweep starts them again.
            SparkGone: end the process.
            ConfigurationError: Spark can't be started.
            StartStopped: a stop was requested before it had started.
        """
        context = self.start().sparkContext
        context.addJobTag(self._tag)
        context.setJobDescription(f"sweep of {len(partitions)} partitions of {scope.topic.identity.topic}")
        work = partial(sweep_partitions, scope)
        try:
            results: list[PartitionResult] = (
                context.parallelize(partitions, len(partitions)).mapPartitions(work).collect()
            )
        except Py4JJavaError as error:
            self.require_alive(error)
            raise SweepJobFailed(f"the sweep's Spark job failed: {error.java_exception}"[:SHOWN_CHARACTERS]) from None
        except (PySparkException, UnboundLocalError) as error:
            # Another process was accepted first where Spark offers the results; PySpark's cleanup then fails, too.
            raise SweepJobFailed(
                f"Spark did not give the results of the sweep's job: {error.__context__ or error}"
            ) from None
        except (Py4JError, OSError, EOFError) as error:
            self.require_alive(error)
            raise jvm_gone(error) from error
        return results

    def require_alive(self, failed: Exception | None = None) -> None:
        """Ask whether Spark still works, so that its end is noticed before rows are due; arguments as `require_spark`.

        Raises:
            SparkGone: it doesn't.
        """
        if self._session is not None:
            require_spark(self._session, failed)

    def give_up(self) -> None:
        """Make the job that runs, if one does, fail at once; from any thread."""
        if self._session is None:
            return
        try:
            self._session.sparkContext.cancelJobsWithTag(self._tag)
        except (Py4JError, OSError, EOFError) as error:
            log.warning("could not cancel the sweep's Spark job: %s", error)

    def stop(self) -> None:
        """End the session, unless it was given; one whose JVM is gone has ended already."""
        if self._own and self._session is not None:
            stop_session(self._session)
            self._session = None
