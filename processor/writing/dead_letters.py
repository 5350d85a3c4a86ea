"""Dead letters that the processor writes: records that failed, and records too large to be registered."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final

from confluent_kafka import KafkaError, Message

from processor.calls.attempts import release_frames
from processor.calls.deadline import log_fields
from processor.health.stats import Stats
from processor.intake.delivery import Delivery
from processor.intake.subscription import SubscribedTopic
from processor.writing.outbox import ANY_PARTITION, Outbox
from wait_registry.clock import Clock
from wait_registry.display import one_line
from wait_registry.records.dead_letter import Failure, Reason, dead_letter_headers
from wait_registry.records.lineage import Lineage

log = logging.getLogger(__name__)

TOO_LARGE: Final = (
    "a dead letter is too large for %s (%s): the record of %s[%d] at offset %d stays registered, or holds the offset. "
    "Raise the topic's max.message.bytes: docs/runbook.md#waitregrecordholdsoffset"
)


class DeadLetters:
    """Sends dead letters to the topic that belongs to where the record was consumed.

    Args:
        outbox: sends them; a refused one ends the process, unless it is too large.
        topics: the consumed topics, by name.
        instance: for the lineage.
        clock: DLQ_TIME.
        stats: counts them when acknowledged.
        log_messages: whether the log line has the message of a handler's error (``log.error_messages``).
    """

    def __init__(
        self,
        outbox: Outbox,
        topics: Mapping[str, SubscribedTopic],
        instance: str,
        clock: Clock,
        stats: Stats,
        log_messages: bool = True,
    ) -> None:
        self._outbox = outbox
        self._topics = topics
        self._instance = instance
        self._clock = clock
        self._stats = stats
        self._log_messages = log_messages

    def send(
        self,
        record: Delivery,
        reason: Reason,
        error: BaseException,
        acknowledged: Callable[[], None],
        too_large: Callable[[], None],
        ours: bool = False,
    ) -> None:
        """Dead-letter a record.

        Args:
            record: the record.
            reason, error: why; the error's tracebacks are in the dead letter, and nowhere else afterwards.
            acknowledged: called when the dead letter is safe; only then may the tombstone be written, or the offset
                be committed.
            too_large: called when the topic or the client refuses it because of its size.
            ours: the error's message is this system's own and is always logged: it holds none of the record's data.
        """
        failure = Failure.from_exception(reason, error, self._clock.now_ms())
        release_frames(error)
        topic = self._topics[record.place[0]].dead_letter_topic
        headers = dead_letter_headers(record.headers, self._lineage(record), failure)

        def safe(message: Message) -> None:
            self._stats.dead_lettered(reason)
            shown = f": {one_line(failure.error_message or '')}" if ours or self._log_messages else ""
            what = (topic, reason.value, failure.error_class, shown)
            log.warning("dead-lettered to %s, reason %s: %s%s", *what, extra=log_fields(record))
            acknowledged()

        def refused(refusal: KafkaError) -> None:
            where = (topic, refusal.name(), *record.place, record.polled_offset)
            log.error(TOO_LARGE, *where, extra=log_fields(record))
            too_large()

        receipt = self._outbox.receipt(f"the dead letter of {record.wait_id}", topic, safe, headers, refused)
        self._outbox.expect(1)
        self._outbox.put(topic, record.value, record.key, ANY_PARTITION, receipt, headers)

    def _lineage(self, record: Delivery) -> Lineage:
        wait_partition, wait_offset = record.registered_at
        return Lineage.of(
            record.original,
            wait_id=record.wait_id,
            wait_partition=wait_partition,
            wait_offset=wait_offset,
            group=record.group,
            instance=self._instance,
            delivery=record.delivery,
            idempotency_key=record.idempotency_key,
            source=record.source,
        )
