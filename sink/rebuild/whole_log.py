"""One partition read from its beginning to an end that was listed before."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from sink.position import TopicPartition
from sink.read.batch_reader import BatchReader
from sink.read.kafka_reader import Batch, SparkReader
from wait_registry.kafka.positions import earliest_offsets
from wait_registry.settings.tree import Settings
from wait_registry.spark import SparkGone

# Called with the partition, offsets read and offsets to read.
Progress = Callable[[TopicPartition, int, int], None]


class WholeLog:
    """Reads one partition, batch by batch."""

    def __init__(
        self,
        settings: Settings,
        spark: SparkSession,
        admin: AdminClient,
        name: TopicPartition,
        largest_record_bytes: int,
    ) -> None:
        """Read nothing yet; ``largest_record_bytes`` is how large a record may be, uncompressed."""
        self._reader = BatchReader(SparkReader(spark, settings.kafka), settings.sink, largest_record_bytes)
        self._name = name
        self.first = earliest_offsets(admin, name.topic, [name.partition])[name.partition]

    def batches(self, end: int, progress: Progress) -> Iterator[pa.Table]:
        """Yield the records below ``end``, a last stable offset.

        Args:
            end: where to stop.
            progress: called after each batch, when its consumer is done with it.

        Raises:
            SparkGone: Spark's JVM or its scratch folders are gone; the message says what to do.
        """
        at = {self._name: self.first}
        while batch := self._next_batch(at, end):
            yield batch.records
            at.update(batch.next_positions)
            progress(self._name, at[self._name] - self.first, end - self.first)

    def _next_batch(self, at: dict[TopicPartition, int], end: int) -> Batch | None:
        try:
            return self._reader.read(at, {self._name: end})
        except SparkGone as gone:
            raise SparkGone(
                f"{gone}. {self._name} was being read from offset {at[self._name]} on, and is as it was. Run the "
                "rebuild again, where records are large with a higher spark.driver_memory or a lower "
                "sink.max_batch_records (500, say)"
            ) from gone
