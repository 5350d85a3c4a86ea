"""The fence: a transactional producer per partition of the wait topic, of which only the last to be made can commit."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from sweeper.batch_room import BatchRoom
from sweeper.outgoing import Outgoing
from wait_registry.kafka.clients import producer_config
from wait_registry.kafka.errors import kafka_failure
from wait_registry.records.tombstone import tombstone_headers
from wait_registry.settings.root import Settings

log = logging.getLogger(__name__)

# librdkafka never splits a batch that a topic refuses, so batches stay well below any usual max.message.bytes.
BATCH_BYTES = 65_536
ABORT_TIMEOUT_S = 5.0


def transactional_id(wait_topic: str, partition: int) -> str:
    """Return the id by which the sweepers of one partition fence one another; derived, so that nobody can set two."""
    return f"waitreg.sweep.{wait_topic}.{partition}"


class FencedProducer:
    """The transactional producer of one partition, good from its fence to the first error and never after it."""

    def __init__(self, settings: Settings, partition: int) -> None:
        """Make the producer; it asks the broker for nothing yet.

        Args:
            settings: cluster, wait topic and the limits of a transaction.
            partition: of the wait topic.
        """
        self._wait_topic = settings.wait.topic
        self._partition = partition
        self._timeout_s = settings.sweeper.transaction_timeout_ms / 1000
        self._broken = False
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
            TransientError: no answer in time; begin anew later.
            FencedError: another sweeper did the same at the same moment.
            ConfigurationError: the broker doesn't let us.
        """
        try:
            self._producer.init_transactions(self._timeout_s)
        except KafkaException as error:
            self._broken = True
            raise kafka_failure(error, f"fencing {self._wait_topic}-{self._partition}") from error

    def export(self, letters: Sequence[Outgoing], limits: Mapping[str, int]) -> None:
        """Write records and the tombstones of their registrations in one transaction (KIP-98).

        ``limits`` is the max.message.bytes of the records' topics; each record is known to fit.

        Whatever is raised leaves this producer unusable: its outcome may be unknown, and only a new fence tells. The
        abort after an error merely spares other readers the wait for the transaction's time-out.

        Raises:
            FencedError: another sweeper has fenced this one; it exports what is left.
            TransientError: out of time or connection; the transaction may have been committed all the same.
            PermanentError: the broker refused a record.
        """
        if self._broken:
            raise RuntimeError("this producer has failed: begin again at the fence, with a new one")
        self._broken = True
        # What one topic refuses fails the transaction, with an error that need not name it.
        topics = ", ".join(sorted({letter.topic for letter in letters}))
        doing = f"exporting {len(letters)} rows of {self._wait_topic}-{self._partition} to {topics}"
        failed: list[KafkaError] = []
        try:
            self._producer.begin_transaction()
            small = {topic: limit for topic, limit in limits.items() if limit < self._batch_bytes}
            self._produce(letters, small, failed)
        except KafkaException as error:
            self._abort()
            raise kafka_failure(error, doing) from error
        except BaseException:
            self._abort()
            raise
        self._commit(doing, failed)
        self._broken = False

    def close(self) -> None:
        """Let go of the producer and of whatever it still holds."""
        self._broken = True
        self._producer.purge()
        del self._producer

    def _produce(self, letters: Sequence[Outgoing], small: Mapping[str, int], failed: list[KafkaError]) -> None:
        room = BatchRoom(small)
        # Without these reports the record after a refused one, or the commit, would only tell that something failed.
        reported = partial(_note_failure, failed)
        produce = self._producer.produce
        for letter in letters:
            if room.is_full(letter):
                self._flush(failed)
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

    def _flush(self, failed: Sequence[KafkaError]) -> None:
        if self._producer.flush(self._timeout_s):
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        if failed:
            raise KafkaException(failed[0])

    def _commit(self, doing: str, failed: Sequence[KafkaError]) -> None:
        try:
            self._producer.commit_transaction(self._timeout_s)
        except KafkaException as error:
            cause = error.args[0]
            # After a time-out the commit may be decided already: nothing must be tried that could contradict it.
            if isinstance(cause, KafkaError) and cause.txn_requires_abort():
                self._abort()
            # "Messages failed delivery": a record says why, and whether that is an outage or a refusal.
            inconsistent = isinstance(cause, KafkaError) and cause.code() == KafkaError._INCONSISTENT
            told = KafkaException(failed[0]) if inconsistent and failed else error
            raise kafka_failure(told, f"committing after {doing}") from error

    def _abort(self) -> None:
        try:
            self._producer.abort_transaction(ABORT_TIMEOUT_S)
        except KafkaException as error:
            log.warning(
                "%s-%d: the failed transaction could not be aborted, the broker will do it at its time-out: %s",
                self._wait_topic,
                self._partition,
                error,
            )


def _note_failure(failed: list[KafkaError], error: KafkaError | None, _: Message) -> None:
    if error is not None:
        failed.append(error)
