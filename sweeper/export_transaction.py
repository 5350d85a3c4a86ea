"""The fence: one transactional producer per partition of the wait topic, of which only the latest can commit."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from sweeper.export_decision import Outgoing
from sweeper.targets import record_size
from wait_registry.kafka.clients import producer_config
from wait_registry.kafka.errors import kafka_failure
from wait_registry.records.tombstone import tombstone_headers
from wait_registry.settings.root import Settings

log = logging.getLogger(__name__)

# librdkafka never splits a batch that a topic refuses, so batches stay well below any usual max.message.bytes.
BATCH_BYTES = 65_536
ABORT_TIMEOUT_S = 5.0


def transactional_id(wait_topic: str, partition: int) -> str:
    """Return the ID by which the sweepers of one partition fence one another; it is derived, not configured."""
    return f"waitreg.sweep.{wait_topic}.{partition}"


def batches(letters: Sequence[Outgoing], limits: Mapping[str, int]) -> Iterator[list[Outgoing]]:
    """Split the records of a transaction, so that what the client puts into one batch is never refused for its size.

    Args:
        letters: of which each alone fits into its topic.
        limits: max.message.bytes of the topics that take less than a full batch; no other topic is counted.

    Returns:
        Records that may be sent together, in their order.
    """
    together: list[Outgoing] = []
    queued: Counter[str] = Counter()
    for letter in letters:
        topic = letter.topic
        if topic in limits:
            size = record_size(letter.key, letter.value, letter.headers)
            if queued[topic] and queued[topic] + size > limits[topic]:
                yield together
                together, queued = [], Counter()
            queued[topic] += size
        together.append(letter)
    yield together


class FencedProducer:
    """The transactional producer of one partition, usable from its fence to the first error and never after it."""

    def __init__(self, settings: Settings, partition: int) -> None:
        """Make the producer; nothing is sent to the broker yet."""
        self._wait_topic = settings.wait.topic
        self._partition = partition
        self._timeout_s = settings.sweeper.transaction_timeout_ms / 1000
        self._broken = False
        # Without these reports only the next record, or the commit, would fail, with an error that gives no reason.
        self._failed: list[KafkaError] = []
        # Uncompressed and with its overhead, so that no batch of tombstones is larger than their topic takes.
        self._batch_bytes = min(BATCH_BYTES, settings.wait.max_message_bytes)
        self._producer = Producer(
            producer_config(
                settings.kafka,
                **{
                    "transactional.id": transactional_id(settings.wait.topic, partition),
                    "transaction.timeout.ms": settings.sweeper.transaction_timeout_ms,
                    # Within a transaction a message can't outlive it.
                    "message.timeout.ms": settings.sweeper.transaction_timeout_ms,
                    "queue.buffering.max.messages": settings.kafka.librdkafka.get(
                        "queue.buffering.max.messages", max(100_000, 2 * settings.sweeper.chunk_rows)
                    ),
                    "batch.size": self._batch_bytes,
                    "linger.ms": 50,
                    "delivery.report.only.error": True,
                },
            )
        )

    def fence(self) -> None:
        """Shut out every earlier producer of this partition; its transactions are completed or aborted on return.

        Raises:
            TransientError: no answer in time; retry later with a new producer.
            FencedError: another sweeper fenced at the same moment.
            ConfigurationError: the broker refuses it.
        """
        try:
            self._producer.init_transactions(self._timeout_s)
        except KafkaException as error:
            self._broken = True
            raise kafka_failure(error, f"fencing {self._wait_topic}-{self._partition}") from error

    def export(self, letters: Sequence[Outgoing], limits: Mapping[str, int]) -> None:
        """Write records and the tombstones of their registrations in one transaction (KIP-98).

        ``limits`` is the max.message.bytes of the records' topics; each record is known to fit.

        Any error leaves this producer unusable: the outcome may be unknown, and only a new fence decides it. The
        abort after an error only spares other readers the wait for the transaction's timeout.

        Raises:
            FencedError: another sweeper has fenced this one, and exports the rest.
            TransientError: out of time or connection; the transaction may have been committed all the same.
            PermanentError: the broker refused a record.
        """
        if self._broken:
            raise RuntimeError("this producer has failed or is retired: start again at the fence, with a new one")
        self._broken = True
        # A refusal by one topic fails the transaction, and its error need not name the topic.
        topics = ", ".join(sorted({letter.topic for letter in letters}))
        doing = f"exporting {len(letters)} rows of {self._wait_topic}-{self._partition} to {topics}"
        try:
            self._producer.begin_transaction()
            self._produce(letters, limits)
        except BaseException as error:
            self._abort()
            if isinstance(error, KafkaException):
                raise kafka_failure(error, doing) from error
            raise
        self._commit(doing)
        self._broken = False

    def retire(self) -> None:
        """Refuse every further export."""
        self._broken = True

    def close(self) -> None:
        """Close the producer and drop what it still holds."""
        self._broken = True
        self._producer.purge()
        del self._producer

    def _produce(self, letters: Sequence[Outgoing], limits: Mapping[str, int]) -> None:
        small = {topic: limit for topic, limit in limits.items() if limit < self._batch_bytes}
        reported = partial(_note_failure, self._failed)
        produce = self._producer.produce
        for number, together in enumerate(batches(letters, small)):
            if number > 0:
                self._flush()
            for letter in together:
                place = {} if letter.partition is None else {"partition": letter.partition}
                produce(letter.topic, letter.value, letter.key, headers=letter.headers, on_delivery=reported, **place)
                produce(
                    self._wait_topic,
                    None,
                    letter.wait_id.encode(),
                    partition=letter.wait_partition,
                    headers=tombstone_headers(letter.outcome),
                    on_delivery=reported,
                )

    def _flush(self) -> None:
        if self._producer.flush(self._timeout_s):
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        if self._failed:
            raise KafkaException(self._failed[0])

    def _commit(self, doing: str) -> None:
        try:
            self._producer.commit_transaction(self._timeout_s)
        except KafkaException as error:
            cause = error.args[0]
            # After a timeout the broker may have decided the commit already: do nothing that could contradict it.
            if isinstance(cause, KafkaError) and cause.txn_requires_abort():
                self._abort()
            # "Messages failed delivery": a record says why, and whether that is an outage or a refusal.
            inconsistent = isinstance(cause, KafkaError) and cause.code() == KafkaError._INCONSISTENT
            reason = KafkaException(self._failed[0]) if inconsistent and self._failed else error
            raise kafka_failure(reason, f"committing after {doing}") from error

    def _abort(self) -> None:
        try:
            self._producer.abort_transaction(ABORT_TIMEOUT_S)
        except KafkaException as error:
            of = f"{self._wait_topic}-{self._partition}"
            log.warning("%s: could not abort the failed transaction, the broker will after its timeout: %s", of, error)


def _note_failure(failed: list[KafkaError], error: KafkaError | None, _: Message) -> None:
    if error is not None:
        failed.append(error)
