"""Where a newly assigned partition starts: at the committed offset, or at its beginning if there never was one."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from processor.consumed_topics import ConsumedTopics
from processor.ending import Fault
from wait_registry.errors import TransientError
from wait_registry.kafka.cluster import TopicIdentity, require_same_identity
from wait_registry.kafka.commit_metadata import decode_metadata
from wait_registry.kafka.errors import is_transient, kafka_failure

log = logging.getLogger(__name__)

# Within a rebalance, while everything waits; an answer takes milliseconds.
ASK_AT_ONCE_S = 1.0
ASK_LIMIT_S = 5.0
# Some refusals come at once, for as long as the coordinator moves.
ASK_PAUSE_S = 1.0


class StartOffsets:
    """Asks the broker instead of leaving it to ``auto.offset.reset``.

    That setting can't tell the first start (begin at the beginning) from a position that has fallen out of the log
    (stop). The answer's metadata also tells which wait topic the committed offset relies on, and which log it is of.

    Args:
        wait_topic: what the wait topic is now.
        consumed: what the consumed topics are now.
        stopping: waits so many seconds; True as soon as the process is to end, which ends the asking too.
        another: asks by another client, where the consumer can't: it is needed for its records meanwhile, and it may
            have forgotten all brokers (`KnownBrokers`), which nobody notices as long as it isn't polled.
    """

    def __init__(
        self,
        wait_topic: TopicIdentity,
        consumed: ConsumedTopics,
        stopping: Callable[[float], bool],
        another: Callable[[list[TopicPartition]], list[TopicPartition]],
    ) -> None:
        self._wait_topic = wait_topic
        self._consumed = consumed
        self._stopping = stopping
        self._another = another

    def at_once(self, consumer: Consumer, partitions: list[TopicPartition]) -> list[TopicPartition] | None:
        """Return the partitions with their start offset; None when the broker doesn't tell within `ASK_AT_ONCE_S`.

        Raises:
            ConfigurationError: the offsets rely on another wait topic of the same name, or are of a log that is gone;
                or permission is missing.
            PermanentError: the broker refuses to tell.
        """
        if not partitions:
            return []
        try:
            told: list[TopicPartition] = consumer.committed(partitions, timeout=ASK_AT_ONCE_S)
            refused = next((answer.error for answer in told if answer.error is not None), None)
        except KafkaException as error:
            refused = error.args[0]
        if refused is None:
            return self._starts(told)
        if not is_transient(refused):
            raise kafka_failure(refused, "asking for committed offsets")
        log.warning("asking for committed offsets, once more: %s (%s)", refused.str(), refused.name())
        return None

    def later(self, partitions: list[TopicPartition], wanted: Callable[[], bool]) -> list[TopicPartition]:
        """Return the partitions with their start offset; waits through a broker outage.

        None of them when the process is to end before the broker has answered, or nobody wants them any more.

        Args:
            partitions: some.
            wanted: whether anybody still wants to know.

        Raises:
            ConfigurationError: as `at_once`.
            PermanentError: as `at_once`.
        """
        while wanted() and not self._stopping(ASK_PAUSE_S):
            try:
                return self._starts(self._another(partitions))
            except TransientError as error:
                log.warning("asking for committed offsets, once more: %s", error)
        return []

    def _starts(self, told: list[TopicPartition]) -> list[TopicPartition]:
        starts = [self._start(answer) for answer in told]
        log.info("assigned: %s", ", ".join(f"{p.topic}[{p.partition}] from {_shown(p.offset)}" for p in starts))
        return starts

    def _start(self, answer: TopicPartition) -> TopicPartition:
        if answer.offset < 0:
            return TopicPartition(answer.topic, answer.partition, OFFSET_BEGINNING)
        recorded = decode_metadata(answer.metadata)
        if recorded is not None:
            self._check(recorded.wait_topic)
            self._consumed.require_committed_in(answer.topic, recorded.input_topic_id)
        return TopicPartition(answer.topic, answer.partition, answer.offset)

    def _check(self, recorded: TopicIdentity) -> None:
        if recorded.topic == self._wait_topic.topic:
            require_same_identity(recorded, self._wait_topic)
        else:
            log.warning(
                "this group has registered its records in wait topic %s so far and now uses %s: leave the old one to a "
                "sweeper until it is empty",
                recorded.topic,
                self._wait_topic.topic,
            )


def _shown(offset: int) -> str:
    return "the beginning" if offset == OFFSET_BEGINNING else str(offset)


class PendingStarts:
    """Asks in threads, so that neither a rebalance nor what is in hand waits for a broker that is slow to answer.

    All but the asking is done in the event loop's thread.

    Args:
        start_offsets: asked.
        loop: the event loop.
        fault: told what ends the process.

    Attributes:
        told: what has been answered, and nobody has taken, with its question.
    """

    def __init__(self, start_offsets: StartOffsets, loop: asyncio.AbstractEventLoop, fault: Fault) -> None:
        self._start_offsets = start_offsets
        self._loop = loop
        self._fault = fault
        # By which question a partition's start is asked for: of one that went and came back the last one counts.
        self._questions: dict[tuple[str, int], object] = {}
        self.told: list[tuple[object, TopicPartition]] = []

    def __len__(self) -> int:
        """Return how many partitions can't begin yet; from any thread."""
        return len(self._questions)

    def ask(self, partitions: list[TopicPartition]) -> None:
        """Begin to ask for new partitions."""
        question = object()
        self._questions.update({(p.topic, p.partition): question for p in partitions})
        # Nobody waits for it: a broker that doesn't answer must not keep the process from ending.
        threading.Thread(target=self._ask, args=(question, list(partitions)), name="start-offsets", daemon=True).start()

    def forget(self, places: Iterable[tuple[str, int]]) -> None:
        """Take note that partitions are ours no more."""
        for place in places:
            self._questions.pop(place, None)

    def end(self) -> None:
        """Ask no more."""
        self._questions.clear()
        self.told.clear()

    def taken(self) -> list[TopicPartition]:
        """Return the starts that were told, once, but for those of partitions that have gone meanwhile."""
        told, self.told = self.told, []
        starts = [start for question, start in told if self._questions.get((start.topic, start.partition)) is question]
        self.forget((start.topic, start.partition) for start in starts)
        return starts

    def _ask(self, question: object, partitions: list[TopicPartition]) -> None:
        try:
            starts = self._start_offsets.later(partitions, lambda: question in list(self._questions.values()))
        except Exception as error:  # noqa: BLE001 - whatever it is ends the process; the loop raises it
            self._fault.report(error)
            return
        told = [(question, start) for start in starts]
        # The loop may be gone by now: then nobody waits.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(lambda: self.told.extend(told))
