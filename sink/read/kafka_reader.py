"""Reads planned ranges of Kafka by Spark. What is behind `RangeReader` is all that knows Spark."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sink.position import TopicPartition
from sink.read.arrow_result import to_arrow
from sink.read.range_plan import Ranges, poll_records, source_range
from sink.read.record_columns import ALL, Columns
from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.kafka.clients import java_client_config
from wait_registry.settings.kafka import KafkaSettings
from wait_registry.spark.session import require_spark

log = logging.getLogger(__name__)

RESULT_LIMIT_PROPERTY = "spark.driver.maxResultSize"
# What the Java client says of credentials, certificates and permissions (KIP-152).
_REFUSED = re.compile(r"\b(Sasl|Ssl)AuthenticationException|\b(Topic|Group)AuthorizationException")
# What pyspark raises: its own errors, and those of the bridge to the JVM.
SPARK_ERRORS = (PySparkException, Py4JError, OSError, EOFError)
MAX_MESSAGE_CHARACTERS = 1_000
# 10 ms instead of 500: a small batch takes 0.2 to 0.45 s instead of 1.25 s.
FETCH_MAX_WAIT_MS = 10
# Spark's default is 120 s. So long a reader waits for a record that the broker doesn't return.
POLL_TIMEOUT_MS = 10_000


class ReadFailed(TransientError):
    """Spark could not read the ranges: read them again, with a pause."""


class BatchTooLarge(ReadFailed):
    """The ranges hold more than the driver takes: read fewer offsets."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What ranges held: one Arrow table, and the offset with which each partition continues."""

    records: pa.Table
    next_positions: Mapping[TopicPartition, int]


class RangeReader(Protocol):
    """Reads what is committed in ranges of partitions."""

    def read(self, ranges: Ranges) -> Batch:
        """Read ranges that end at or below the last stable offsets.

        Raises:
            BatchTooLarge: read fewer offsets.
            ReadFailed: nothing was read; retry.
            ConfigurationError: the broker refuses the client.
            SparkGone: end the process.
        """

    def require_alive(self) -> None:
        """Raise `SparkGone` if nothing can be read any more."""

    def cancel(self) -> None:
        """End a read that is under way in another thread: it raises `ReadFailed`."""


class SparkReader:
    """A `RangeReader`: one batch query per read, whose consumers stay open from one read to the next."""

    def __init__(self, spark: SparkSession, kafka: KafkaSettings, columns: Columns = ALL) -> None:
        """Prepare; reads nothing.

        Args:
            spark: the session.
            kafka: the cluster.
            columns: what is read of each record.
        """
        self._spark = spark
        self._kafka = kafka
        self._columns = columns
        self._name = f"waitreg-sink-reader-{uuid.uuid4()}"

    def read(self, ranges: Ranges) -> Batch:
        polls = poll_records(ranges)
        options = {
            **source_options(self._kafka),
            # Spark keeps consumers by their group, and refuses one of other options. The group has no members.
            "kafka.group.id": f"{self._name}-{polls}",
            "kafka.max.poll.records": str(polls),
            **source_range(ranges),
        }
        try:
            self._spark.sparkContext.setJobGroup(self._name, "waitreg sink")
            frame = self._spark.read.format("kafka").options(**options).load().selectExpr(*self._columns.expressions)
            records = to_arrow(frame, self._columns.schema)
        except SPARK_ERRORS as error:
            require_spark(self._spark, error)
            raise read_failure(error) from None
        return Batch(records, {name: each.end for name, each in ranges.items()})

    def require_alive(self) -> None:
        require_spark(self._spark)

    def cancel(self) -> None:
        try:
            self._spark.sparkContext.cancelJobGroup(self._name)
        except (*SPARK_ERRORS, AttributeError) as error:  # the JVM has ended, and the read with it
            log.debug("cancelling a read: %s", error)


def source_options(kafka: KafkaSettings) -> dict[str, str]:
    """Return the options that every read of a topic by Spark has; they include secrets."""
    client = java_client_config(kafka, **{"isolation.level": "read_committed", "fetch.max.wait.ms": FETCH_MAX_WAIT_MS})
    return {
        **{f"kafka.{name}": value for name, value in client.items()},
        "kafkaConsumer.pollTimeoutMs": str(POLL_TIMEOUT_MS),
        "includeHeaders": "true",
        "failOnDataLoss": "true",
    }


def read_failure(error: BaseException) -> ReadFailed | ConfigurationError:
    """Return what Spark's own error asks for, without the Java stack trace that its text holds."""
    text = str(error)
    if RESULT_LIMIT_PROPERTY in text:
        return BatchTooLarge(f"a batch is larger than {RESULT_LIMIT_PROPERTY} allows")
    lines = [line.strip() for line in text.splitlines()]
    causes = [line for line in lines[1:] if line.startswith(("Caused by:", ":"))]
    shown = " ".join([*lines[:1], *causes])[:MAX_MESSAGE_CHARACTERS]
    if _REFUSED.search(text):
        # The other client may still be connected, so that nothing else would ever report it.
        return ConfigurationError(
            f"the broker refuses Spark's Kafka client, or the client the broker: {shown}. Check kafka.security and "
            "kafka.java: credentials, certificates, and the permissions of their user"
        )
    return ReadFailed(shown)
