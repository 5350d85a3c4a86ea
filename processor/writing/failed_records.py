"""What the processor writes of records that failed, or are too large to be registered: dead letters, retry records."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from confluent_kafka import KafkaError, Message

from processor.handlers.user_code import release_frames
from processor.health.clock_watch import ClockWatch
from processor.health.stats import Stats
from processor.intake.delivery import Delivery
from processor.intake.subscription import SubscribedTopic
from processor.protocol.results import DeadLetter, Retry
from processor.writing.outbox import Outbox, Receipt
from wait_registry.display import one_line
from wait_registry.errors import PermanentError
from wait_registry.logs import log_fields
from wait_registry.records.dead_letter import Failure, Reason, dead_letter_headers
from wait_registry.records.delays import delay_text
from wait_registry.records.lineage import Lineage, one_more
from wait_registry.records.retry_record import retry_headers
from wait_registry.settings.tree import Settings

log = logging.getLogger(__name__)

TOO_LARGE: Final = (
    "a dead letter is too large for %s (%s): the record of %s[%d] at offset %d stays registered, or holds the offset. "
    "Raise the topic's max.message.bytes: docs/runbook.md#waitregrecordholdsoffset"
)


@dataclass(frozen=True, slots=True)
class FailedRecords:
    """Sends records to the dead letter topics and retry topics that belong to where they were consumed.

    ``acknowledged`` is called when what was sent is safe: only then may the tombstone be written, or the offset be
    committed. ``refused`` is called if it is too large for its topic. Afterwards, the error's tracebacks are in the
    dead letter alone.

    Args:
        outbox: sends them; another refusal ends the process.
        topics: the consumed topics, by name.
        instance: for the lineage.
        settings: ``processor.max_deliveries``, since deliveries from retry topics don't count, and whether log lines
            have the message of a handler's error (``log.error_messages``).
        clock_watch: gets the append times of retry records.
        stats: counts what is acknowledged.
    """

    outbox: Outbox
    topics: Mapping[str, SubscribedTopic]
    instance: str
    settings: Settings
    clock_watch: ClockWatch
    stats: Stats

    def send_dead_letter(
        self, record: Delivery, dead_letter: DeadLetter, acknowledged: Callable[[], None], refused: Callable[[], None]
    ) -> None:
        """Send a record to a dead letter topic.

        Args:
            record: the record.
            dead_letter: why. A message of this system's own is always logged: it holds none of the record's data.
            acknowledged, refused: see the class.
        """
        reason, error = Reason(dead_letter.reason), dead_letter.error or PermanentError("no error was given")
        failure = Failure.from_exception(reason, error, self.clock_watch.now_ms())
        release_frames(error)
        topic = self.topics[record.place[0]].dead_letter_topic
        headers = dead_letter_headers(record.headers, self._lineage(record, record.delivery), failure)

        def safe(message: Message) -> None:
            self.stats.dead_lettered(reason)
            logged = dead_letter.ours or self.settings.log.error_messages
            shown = f": {one_line(failure.error_message or '')}" if logged else ""
            what = (topic, reason.value, failure.error_class, shown)
            log.warning("dead-lettered to %s, reason %s: %s%s", *what, extra=log_fields(record))
            acknowledged()

        def too_large(refusal: KafkaError) -> None:
            where = (topic, refusal.name(), *record.place, record.polled_offset)
            log.error(TOO_LARGE, *where, extra=log_fields(record))
            refused()

        what = f"the dead letter of {record.wait_id}"
        self.outbox.send(Receipt(self.outbox, what, topic, safe, headers, too_large), record.key, record.value)

    def send_retry(
        self,
        record: Delivery,
        retry: Retry,
        acknowledged: Callable[[], None],
        refused: Callable[[BaseException], None],
    ) -> None:
        """Send a record to a retry topic.

        Args:
            record: the record.
            retry: which topic, and why.
            acknowledged, refused: see the class.
        """
        topic, delay = self.topics[record.place[0]].retry_topics[retry.delay_s], delay_text(retry.delay_s)
        counted = one_more(record.max_deliveries or self.settings.processor.max_deliveries)
        headers = retry_headers(record.headers, self._lineage(record, one_more(record.delivery), counted), retry.error)
        sent_ms = self.clock_watch.now_ms()

        def safe(message: Message) -> None:
            self.clock_watch.observe(message.timestamp(), sent_ms)
            self.stats.retried(delay)
            acknowledged()

        def too_large(error: KafkaError) -> None:
            cause = PermanentError(f"too large for topic {topic} with what a retry record adds: {error.str()}")
            cause.__cause__ = retry.error
            refused(cause)

        what = f"the retry record of {record.wait_id}"
        self.outbox.send(Receipt(self.outbox, what, topic, safe, headers, too_large), record.key, record.value)
        release_frames(retry.error)
        log.info("handled again in %s: %s", delay, type(retry.error).__name__, extra=log_fields(record))

    def _lineage(self, record: Delivery, delivery: int, max_deliveries: int | None = None) -> Lineage:
        wait_partition, wait_offset = record.registered_at
        return Lineage.of(
            record.original,
            wait_id=record.wait_id,
            wait_partition=wait_partition,
            wait_offset=wait_offset,
            group=record.group,
            instance=self.instance,
            delivery=delivery,
            max_deliveries=max_deliveries,
            idempotency_key=record.idempotency_key,
            source=record.source,
        )
