"""One run of a Spark streaming query over Kafka partitions, from given offsets, on a scratch checkpoint."""

from __future__ import annotations

import logging
import re
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sink.batch import EXPRESSIONS, SCHEMA, SIZED_SCHEMA, expressions_up_to
from sink.position import TopicPartition
from sink.stream_offsets import assignment, batch_end_offsets, starting_offsets
from wait_registry.errors import ConfigurationError, TransientError, WaitRegistryError
from wait_registry.kafka.clients import java_client_config
from wait_registry.settings.kafka import KafkaSettings

log = logging.getLogger(__name__)

RESULT_LIMIT_PROPERTY = "spark.driver.maxResultSize"
# What the Java client says of credentials, certificates and rights (KIP-152).
_REFUSED = re.compile(r"\b(Sasl|Ssl)AuthenticationException|\b(Topic|Group)AuthorizationException")
# What pyspark raises: its own errors, and those of the bridge to the JVM.
SPARK_ERRORS = (PySparkException, Py4JError)
MAX_MESSAGE_CHARACTERS = 1_000
# 10 ms instead of 500: a small batch is there in 0.2-0.45 s instead of 1.25 s.
FETCH_MAX_WAIT_MS = 10
# Kafka's own default.
MAX_POLL_RECORDS = 500

# The batch, where it ends, and when it was begun (monotonic clock, s); returns whether another full one waits already.
OnBatch = Callable[[pa.Table, Mapping[TopicPartition, int], float], bool]


class QueryFailed(TransientError):
    """Spark ended the query: start it again from the positions in Postgres, with backoff."""


class BatchTooLarge(QueryFailed):
    """A batch was larger than the driver takes: start again with smaller ones."""


class SparkGone(WaitRegistryError):
    """The driver's JVM has ended, and with it all it did: end the process, and let it be started again."""


class KafkaQuery:
    """A query that hands every micro-batch, as one Arrow table with its true end offsets, to ``on_batch``.

    A batch begins ``trigger_s`` after the one before it, and at once where a full one waits. Spark's own trigger
    would have each wait for the next interval: it knows the time only, not how much there is to read.

    What ``on_batch`` raises ends the query and comes out of `wait` unchanged. No batch is handed on after `stop`
    returned, and none is being worked on then.
    """

    def __init__(
        self,
        spark: SparkSession,
        kafka: KafkaSettings,
        offsets: Mapping[TopicPartition, int],
        on_batch: OnBatch,
        *,
        name: str,
        max_records: int,
        trigger_s: float,
        scratch: Path,
        max_record_bytes: int | None = None,
    ) -> None:
        """Start the query at ``offsets``, which name every partition to be read.

        ``scratch`` is an empty folder, an absolute path; it is the query's from here, and removed with it.
        With ``max_record_bytes`` what is in larger records stays out of the batch (`sink.batch.expressions_up_to`).
        """
        self._on_batch = on_batch
        self._expressions = EXPRESSIONS if max_record_bytes is None else expressions_up_to(max_record_bytes)
        self._schema = SCHEMA if max_record_bytes is None else SIZED_SCHEMA
        self._error: BaseException | None = None
        self._trigger_s = trigger_s
        self._stopped = threading.Event()
        self._turn = threading.Lock()
        self._checkpoint = scratch
        options = {
            **source_options(kafka),
            "assign": assignment(offsets),
            "startingOffsets": starting_offsets(offsets),
            "maxOffsetsPerTrigger": str(max_records),
            **poll_options(max_records, len(offsets)),
        }
        try:
            self._query = self._started(spark, options, name)
        except BaseException:
            self._remove_scratch()
            raise

    def wait(self, timeout_s: float) -> None:
        """Let it run for a while; raises what ended it.

        Of Spark's own errors that is `QueryFailed`, or ConfigurationError where the broker refuses its Kafka client.
        """
        try:
            ended = self._query.awaitTermination(timeout_s)
        except SPARK_ERRORS as error:
            raise (self._error or query_failure(error)) from None
        if self._error is not None:
            raise self._error
        if ended:
            raise QueryFailed("Spark ended the query without an error")

    def stop(self) -> None:
        """End the query and wait for a batch that is being worked on."""
        self._stopped.set()
        try:
            self._query.stop()
        except (*SPARK_ERRORS, OSError, EOFError) as error:  # it failed before, or the JVM: `wait` has told why
            log.debug("stopping the query: %s", error)
        finally:
            with self._turn:
                self._remove_scratch()

    def _started(self, spark: SparkSession, options: dict[str, str], name: str) -> StreamingQuery:
        frame = spark.readStream.format("kafka").options(**options).load().selectExpr(*self._expressions)
        # How often Spark looks for records where there are none.
        spark.conf.set("spark.sql.streaming.pollingDelay", f"{round(self._trigger_s * 1000)}ms")
        return (
            frame.writeStream.foreachBatch(self._handle)
            .queryName(f"waitreg-sink-{name}-{id(self)}")
            .option("checkpointLocation", self._checkpoint.as_uri())
            .start()
        )

    def _remove_scratch(self) -> None:
        shutil.rmtree(self._checkpoint, ignore_errors=True)

    def _handle(self, frame: DataFrame, batch_id: int) -> None:
        with self._turn:
            if self._stopped.is_set():
                return
            began = time.monotonic()
            try:
                batch = frame.toArrow().cast(self._schema)
                another_waits = self._on_batch(batch, batch_end_offsets(self._checkpoint, batch_id), began)
            except Exception as error:  # noqa: BLE001 - kept, and raised by `wait`
                # Spark passes on the text of an error alone; the error itself says what is to be done. Its text must be
                # short: Spark searches it with a regular expression that overflows the stack on a long trace.
                self._error = query_failure(error) if isinstance(error, SPARK_ERRORS) else error
                raise QueryFailed(type(error).__name__) from None
            if not another_waits:
                self._stopped.wait(began + self._trigger_s - time.monotonic())


def require_spark(spark: SparkSession) -> None:
    """Raise `SparkGone` unless the session's JVM answers."""
    try:
        spark.sparkContext._jvm.java.lang.System.nanoTime()
    except (Py4JError, OSError, AttributeError) as error:
        raise SparkGone("Spark's JVM has ended (out of memory? see its output above); start the sink again") from error


def source_options(kafka: KafkaSettings) -> dict[str, str]:
    """Return the options that every read of a topic by Spark has, streaming or not; they include secrets."""
    client = java_client_config(kafka, **{"isolation.level": "read_committed", "fetch.max.wait.ms": FETCH_MAX_WAIT_MS})
    return {
        **{f"kafka.{name}": value for name, value in client.items()},
        "includeHeaders": "true",
        "failOnDataLoss": "true",
        "groupIdPrefix": "waitreg-sink-reader",
    }


def poll_options(max_records: int, partitions: int) -> dict[str, str]:
    """Return the option that bounds what is held besides a batch of so many records.

    Each partition's consumer keeps what its last poll gave, decompressed and uncounted, until Spark has asked for it:
    500 records by default, far more than a heap takes where a batch may have a few only.
    """
    return {"kafka.max.poll.records": str(max(1, min(MAX_POLL_RECORDS, max_records // (2 * max(1, partitions)))))}


def query_failure(error: BaseException) -> QueryFailed | ConfigurationError:
    """Return what Spark's own error asks for, without the Java stack trace that its text holds."""
    said = str(error)
    if RESULT_LIMIT_PROPERTY in said:
        return BatchTooLarge(f"a batch is larger than {RESULT_LIMIT_PROPERTY} allows")
    lines = [line.strip() for line in said.splitlines()]
    telling = [line for line in lines[1:] if line.startswith(("Caused by:", ":"))]
    shown = " ".join([*lines[:1], *telling])[:MAX_MESSAGE_CHARACTERS]
    if _REFUSED.search(said):
        # The other client may still be connected, so that nothing else would ever say it.
        return ConfigurationError(
            f"broker and Spark's Kafka client don't let each other in: {shown}. Check kafka.security and kafka.java: "
            "credentials, certificates, and the rights of their user"
        )
    return QueryFailed(shown)
