"""The transaction of an export: records and the tombstones of their registrations, by the partition's own producer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from sweeper.export_decision import Outgoing
from wait_registry.kafka.fenced_producer import FencedProducer, ToSend
from wait_registry.records.tombstone import tombstone_headers
from wait_registry.settings.tree import Settings


def transactional_id(wait_topic: str, partition: int) -> str:
    """Return the ID by which the sweepers of one partition fence one another; it is derived, not configured."""
    return f"waitreg.sweep.{wait_topic}.{partition}"


class ExportProducer(FencedProducer):
    """The producer of one partition of the wait topic."""

    def __init__(self, settings: Settings, partition: int) -> None:
        """Make the producer; nothing is sent to the broker yet."""
        self._wait_topic = settings.wait.topic
        self._partition = partition
        super().__init__(
            settings.kafka,
            transactional_id(settings.wait.topic, partition),
            settings.sweeper.transaction_timeout_ms,
            queued=2 * settings.sweeper.chunk_rows,
            # Uncompressed and with its overhead, so that no batch of tombstones is larger than their topic takes.
            batch_bytes=settings.wait.max_message_bytes,
        )

    def export(self, records: Sequence[Outgoing], limits: Mapping[str, int]) -> None:
        """Write records and the tombstones of their registrations in one transaction; errors as `write`.

        Args:
            records: what is exported; each record is known to fit.
            limits: max.message.bytes of the records' topics.
        """
        # A refusal by one topic fails the transaction, and its error need not name the topic.
        topics = ", ".join(sorted({record.topic for record in records}))
        doing = f"exporting {len(records)} rows of {self._wait_topic}-{self._partition} to {topics}"
        self.write([partial(self._with_tombstones, records)], limits, doing)

    def _with_tombstones(self, records: Sequence[Outgoing]) -> Iterator[ToSend]:
        for record in records:
            yield ToSend(record.topic, record.partition, record.key, record.value, record.headers)
            headers = tombstone_headers(record.outcome)
            yield ToSend(self._wait_topic, record.wait_partition, record.wait_id.encode(), None, headers)
