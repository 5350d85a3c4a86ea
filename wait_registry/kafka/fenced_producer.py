"""The fence: a transactional producer per transactional ID, of which only the latest can commit."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from wait_registry.kafka.clients import flush, producer_config
from wait_registry.kafka.errors import DROPPED, kafka_failure, write_failure
from wait_registry.kafka.targets import record_size
from wait_registry.settings.kafka import KafkaSettings

log = logging.getLogger(__name__)

# librdkafka never splits a batch that a topic refuses, so batches stay well below any usual max.message.bytes.
BATCH_BYTES = 65_536
ABORT_TIMEOUT_S = 5.0
# What a record failed for if that is because of another one, which was refused in the same batch or before it.
_OF_ANOTHER = DROPPED | {KafkaError._INVALID_DIFFERENT_RECORD}
# The key decides.
ANY_PARTITION = -1


# A named tuple, not a frozen dataclass: two per exported record, at a third of the cost.
class ToSend(NamedTuple):
    """A record of a transaction; without a partition its key decides, ``acknowledged`` gets the broker's answer."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    acknowledged: Callable[[Message], None] | None = None


def batches(records: Iterable[ToSend], limits: Mapping[str, int]) -> Iterator[list[ToSend]]:
    """Split the records of a transaction, so that what the client puts into one batch is never refused for its size.

    Args:
        records: of which each alone fits into its topic.
        limits: max.message.bytes of the topics that take less than a full batch; no other topic is counted.

    Returns:
        Records that may be sent together, in their order.
    """
    if not limits:
        yield list(records)
        return
    together: list[ToSend] = []
    queued: Counter[str] = Counter()
    for record in records:
        topic = record.topic
        if topic in limits:
            size = record_size(record.key, record.value, record.headers)
            if queued[topic] and queued[topic] + size > limits[topic]:
                yield together
                together, queued = [], Counter()
            queued[topic] += size
        together.append(record)
    yield together


class FencedProducer:
    """The transactional producer of one ID, usable from its fence to the first error and never after it."""

    def __init__(
        self,
        kafka: KafkaSettings,
        name: str,
        timeout_ms: int,
        *,
        queued: int,
        batch_bytes: int = BATCH_BYTES,
        answers: bool = False,
    ) -> None:
        """Make the producer; nothing is sent to the broker yet.

        Args:
            kafka: the cluster.
            name: the transactional ID (KIP-98).
            timeout_ms: of a transaction and of each wait for the broker, ms.
            queued: how many records the client must be able to hold.
            batch_bytes: largest batch, bytes: no topic written to without a limit takes less.
            answers: whether `ToSend.acknowledged` is called, which costs a call per record.
        """
        self._name = name
        self._timeout_s = timeout_ms / 1000
        self._batch_bytes = min(BATCH_BYTES, batch_bytes)
        self._broken = False
        # Without these reports only the next record, or the commit, would fail, with an error that gives no reason.
        self._failed: list[tuple[KafkaError, str]] = []
        # The topic whose error ended the last transaction, if a record had one.
        self.refused_by: str | None = None
        queue = "queue.buffering.max.messages"
        own = {
            "transactional.id": name,
            "transaction.timeout.ms": timeout_ms,
            "message.timeout.ms": timeout_ms,  # within a transaction a message can't outlive it
            queue: kafka.librdkafka.get(queue, max(100_000, queued)),
            "batch.size": self._batch_bytes,
            "linger.ms": 50,
            "delivery.report.only.error": not answers,
        }
        self._producer = Producer(producer_config(kafka, **own))

    def fence(self) -> None:
        """Shut out every earlier producer of this ID; its transactions are completed or aborted on return.

        Raises:
            TransientError: no answer in time; retry later with a new producer.
            FencedError: another producer fenced at the same moment.
            ConfigurationError: the broker refuses it.
        """
        try:
            self._producer.init_transactions(self._timeout_s)
        except KafkaException as error:
            self._broken = True
            raise kafka_failure(error, f"fencing {self._name}") from error

    def write(self, parts: Sequence[Callable[[], Iterable[ToSend]]], limits: Mapping[str, int], doing: str) -> None:
        """Write records in one transaction.

        Any error leaves this producer unusable: the outcome may be unknown, and only a new fence decides it. The
        abort after an error only spares other readers the wait for the transaction's timeout.

        Args:
            parts: of the transaction; each is called when all records of the one before are acknowledged.
            limits: max.message.bytes of the records' topics; each record is known to fit.
            doing: what this is, for messages.

        Raises:
            FencedError: another producer has fenced this one.
            TransientError: anything else than the other errors here, such as an outage or a transactional ID that the
                broker has forgotten; the transaction may have been committed all the same.
            ConfigurationError: the broker refuses this client, or a topic is missing.
            RecordRefused: a record is too large or invalid for its topic.
        """
        if self._broken:
            raise RuntimeError("this producer has failed or is retired: start again at the fence, with a new one")
        self._broken = True
        try:
            self._producer.begin_transaction()
            self._produce(parts, limits)
        except BaseException as error:
            self._abort()
            if isinstance(error, KafkaException):
                raise write_failure(error, doing) from error
            raise
        self._commit(doing)
        self._broken = False

    def retire(self) -> None:
        """Refuse every further transaction."""
        self._broken = True

    def close(self) -> None:
        """Close the producer and drop what it still holds."""
        self._broken = True
        self._producer.purge()
        del self._producer

    def _produce(self, parts: Sequence[Callable[[], Iterable[ToSend]]], limits: Mapping[str, int]) -> None:
        small = {topic: limit for topic, limit in limits.items() if limit < self._batch_bytes}
        produce, refused = self._producer.produce, partial(_report, self._failed, None)
        for part_number, part in enumerate(parts):
            if part_number > 0:
                self._flush()
            for batch_number, together in enumerate(batches(part(), small)):
                if batch_number > 0:
                    self._flush()
                for topic, partition, key, value, headers, acknowledged in together:
                    place = ANY_PARTITION if partition is None else partition
                    reported = partial(_report, self._failed, acknowledged) if acknowledged else refused
                    try:
                        produce(topic, value, key, headers=headers, on_delivery=reported, partition=place)
                    except BufferError:
                        # The client holds as much as kafka.librdkafka allows.
                        self._flush()
                        try:
                            produce(topic, value, key, headers=headers, on_delivery=reported, partition=place)
                        except BufferError as error:
                            raise KafkaException(KafkaError(KafkaError._QUEUE_FULL)) from error

    def _flush(self) -> None:
        if flush(self._producer, self._timeout_s):
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        if self._failed:
            raise KafkaException(self._first_failure())

    def _first_failure(self) -> KafkaError:
        """Return what a record failed for, if there is one that didn't fail because of another."""
        first = next((failed for failed in self._failed if failed[0].code() not in _OF_ANOTHER), self._failed[0])
        error, self.refused_by = first
        return error

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
            reason = KafkaException(self._first_failure()) if inconsistent and self._failed else error
            raise write_failure(reason, f"committing after {doing}") from error

    def _abort(self) -> None:
        try:
            self._producer.abort_transaction(ABORT_TIMEOUT_S)
        except KafkaException as error:
            log.warning(
                "%s: could not abort the failed transaction, the broker will after its timeout: %s", self._name, error
            )


def _report(
    failed: list[tuple[KafkaError, str]],
    acknowledged: Callable[[Message], None] | None,
    error: KafkaError | None,
    message: Message,
) -> None:
    if error is not None:
        failed.append((error, str(message.topic())))
    elif acknowledged is not None:
        acknowledged(message)
