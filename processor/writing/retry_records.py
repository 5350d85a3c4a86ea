"""Retry records: what failed and is handled again later."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from confluent_kafka import KafkaError, Message

from processor.calls.attempts import release_frames
from processor.calls.deadline import log_fields
from processor.health.clock_watch import ClockWatch
from processor.health.stats import Stats
from processor.intake.delivery import Delivery
from processor.intake.subscription import SubscribedTopic
from processor.protocol.results import Retry
from processor.writing.outbox import ANY_PARTITION, Outbox
from wait_registry.errors import PermanentError
from wait_registry.records.delays import delay_text
from wait_registry.records.lineage import Lineage, one_more
from wait_registry.records.retry_record import retry_headers

log = logging.getLogger(__name__)


class RetryRecords:
    """Sends records to the retry topics of the input topic that they belong to.

    Args:
        outbox: sends them; a refusal ends the process, except that of a record too large.
        topics: the consumed topics, by name.
        instance: for the lineage.
        max_deliveries: ``processor.max_deliveries``; deliveries from retry topics don't count.
        clock_watch: gets the append times.
        stats: counts them when acknowledged.
    """

    def __init__(
        self,
        outbox: Outbox,
        topics: Mapping[str, SubscribedTopic],
        instance: str,
        max_deliveries: int,
        clock_watch: ClockWatch,
        stats: Stats,
    ) -> None:
        self._outbox = outbox
        self._topics = topics
        self._instance = instance
        self._max_deliveries = max_deliveries
        self._clock_watch = clock_watch
        self._stats = stats

    def send(
        self,
        record: Delivery,
        retry: Retry,
        acknowledged: Callable[[], None],
        refused: Callable[[BaseException], None],
    ) -> None:
        """Send a record to a retry topic.

        Args:
            record: the record.
            retry: which topic, and why; the error's tracebacks are nowhere afterwards.
            acknowledged: called when the retry record is safe; only then may the tombstone be written, or the offset be
                committed.
            refused: called if it is too large for its topic.
        """
        topic, delay = self._topics[record.place[0]].retry_topics[retry.delay_s], delay_text(retry.delay_s)
        headers = retry_headers(record.headers, self._lineage(record), retry.error)
        sent_ms = self._clock_watch.now_ms()

        def safe(message: Message) -> None:
            self._clock_watch.observe(message.timestamp(), sent_ms)
            self._stats.retried(delay)
            acknowledged()

        def too_large(error: KafkaError) -> None:
            cause = PermanentError(f"too large for topic {topic} with what a retry record adds: {error.str()}")
            cause.__cause__ = retry.error
            refused(cause)

        receipt = self._outbox.receipt(f"the retry record of {record.wait_id}", topic, safe, headers, too_large)
        self._outbox.expect(1)
        self._outbox.put(topic, record.value, record.key, ANY_PARTITION, receipt, headers)
        release_frames(retry.error)
        log.info("handled again in %s: %s", delay, type(retry.error).__name__, extra=log_fields(record))

    def _lineage(self, record: Delivery) -> Lineage:
        wait_partition, wait_offset = record.registered_at
        return Lineage.of(
            record.original,
            wait_id=record.wait_id,
            wait_partition=wait_partition,
            wait_offset=wait_offset,
            group=record.group,
            instance=self._instance,
            delivery=one_more(record.delivery),
            max_deliveries=one_more(record.max_deliveries or self._max_deliveries),
            idempotency_key=record.idempotency_key,
            source=record.source,
        )
