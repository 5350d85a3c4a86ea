"""Where a newly assigned partition starts: at the committed offset, or at its beginning if there never was one."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from processor.fault import Fault
from processor.intake.consumed_topics import ConsumedTopics
from processor.intake.start_decision import Start, own_start, require_same_identities
from wait_registry.errors import TransientError
from wait_registry.kafka.cluster import TopicIdentity, require_same_identity
from wait_registry.kafka.commit_metadata import CommitMetadata, decode_metadata
from wait_registry.kafka.errors import is_transient, kafka_failure
from wait_registry.kafka.outside_log import outside_log
from wait_registry.records.topics import TopicPartition

log = logging.getLogger(__name__)

# The rebalance and all work wait meanwhile; an answer takes milliseconds.
ASK_AT_ONCE_S = 1.0
ASK_LIMIT_S = 5.0
# Errors are immediate while the coordinator is moving, so retries need pauses.
ASK_PAUSE_S = 1.0

T = TypeVar("T")

Offsets: TypeAlias = Callable[[Iterable[TopicPartition]], Mapping[TopicPartition, int]]


@dataclass
class StartOffsets:
    """Asks the broker instead of leaving it to ``auto.offset.reset``.

    That setting can't distinguish the first start (start at the beginning) from a position that is no longer in the log
    (stop). The answer's metadata also names the wait topic and the input topic that the committed offset relies on.

    Args:
        wait_topic: what the wait topic is now.
        consumed: what the consumed topics are now.
        stopping: waits for a number of seconds; returns True as soon as the process must end, which ends the retries.
        another: asks through another client: the consumer is needed for its records meanwhile, and it may have
            forgotten all brokers (`KnownBrokers`), which shows only while it is polled.
        ends: returns the ends of partitions, of those for which it gets an answer in time.
        beginnings: returns the first offsets in the log in the same way.
    """

    wait_topic: TopicIdentity
    consumed: ConsumedTopics
    stopping: Callable[[float], bool]
    another: Callable[[list[KafkaPartition]], list[KafkaPartition]]
    ends: Offsets
    beginnings: Offsets

    def at_once(self, consumer: Consumer, partitions: list[KafkaPartition]) -> list[Start] | None:
        """Return the partitions with their start offset; None without an answer within `ASK_AT_ONCE_S`.

        Raises:
            ConfigurationError: the offsets rely on another wait topic of the same name, on a deleted input topic or on
                `processor.redeliver_to`, or a permission is missing.
            PermanentError: the broker refuses the request.
        """
        if not partitions:
            return []
        try:
            answers: list[KafkaPartition] = consumer.committed(partitions, timeout=ASK_AT_ONCE_S)
            refused = next((answer.error for answer in answers if answer.error is not None), None)
        except KafkaException as error:
            refused = error.args[0]
        if refused is None:
            try:
                return self._starts(answers)
            except TransientError as error:
                log.warning("asking again for committed offsets: %s", error)
                return None
        if not is_transient(refused):
            raise kafka_failure(refused, "asking for committed offsets")
        log.warning("asking again for committed offsets: %s (%s)", refused.str(), refused.name())
        return None

    def announced(self, consumer: Consumer, starts: list[Start], bound: int, mode: str) -> list[Start]:
        """Commit the beginning of each partition that was never committed, and return all starts.

        So a partition without records has a committed offset too. If the broker doesn't answer, the engine commits the
        beginning when the first record shows it. An offset whose commit says something else of redeliveries is
        committed again, since redrives rely on it.

        Args:
            consumer: within its assignment callback.
            starts: of all new partitions.
            bound: how many uncommitted records this process may have.
            mode: in which it registers.
        """
        unset = [start for start in starts if start.offset is None]
        said = {start[:2]: start.commits.with_recorded(bound, mode) for start in unset if start.commits is not None}
        firsts = self.beginnings(said)
        offsets = [KafkaPartition(*place, first, said[place].encode(first)) for place, first in firsts.items()]
        offsets += [KafkaPartition(*start[:3], text) for start in starts if (text := start.corrected())]
        if not offsets:
            return starts
        try:
            answers = consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            log.info("beginnings aren't committed before the first records: %s", error.args[0].str())
            return starts
        done = {(answer.topic, answer.partition): answer.offset for answer in answers if answer.error is None}
        return [
            start._replace(offset=done[start[:2]], recorded=said[start[:2]])
            if start[:2] in done.keys() & said
            else start
            for start in starts
        ]

    def outside(self, offsets: Mapping[TopicPartition, int]) -> list[TopicPartition]:
        """Return the partitions whose offset isn't in the log, as far as the broker answers in time."""
        return outside_log(offsets, self.beginnings(list(offsets)), self.ends(list(offsets)))

    def later(self, partitions: list[KafkaPartition], wanted: Callable[[], bool]) -> list[Start]:
        """Return the partitions with their start offset; waits through a broker outage.

        An empty list if the process must end before the broker answers, or if all of them were revoked meanwhile.

        Args:
            partitions: some.
            wanted: returns whether any of them is still assigned.

        Raises:
            ConfigurationError: as `at_once`.
            PermanentError: as `at_once`.
        """
        return self._through_outage(lambda: self._starts(self.another(partitions)), wanted) or []

    def is_passed(self, place: TopicPartition, position: int, wanted: Callable[[], bool]) -> bool | None:
        """Return whether the group has committed beyond a position that isn't in the log; waits through an outage.

        Then another member has had the partition, and nothing is lost: what is committed was settled or registered.

        Args:
            place: topic and partition.
            position: of this member.
            wanted: returns whether the partition is still assigned. If it isn't, or if the process must end, the answer
                is None.
        """

        def is_passed() -> bool:
            committed = int(self.another([KafkaPartition(*place)])[0].offset)
            if (first := self.beginnings([place]).get(place)) is None:
                raise TransientError(f"the beginning of {place[0]}[{place[1]}] isn't known yet")
            return committed > position and committed >= first

        return self._through_outage(is_passed, wanted)

    def _through_outage(self, question: Callable[[], T], wanted: Callable[[], bool]) -> T | None:
        """Ask until there is an answer; None if it isn't wanted any more, or if the process must end."""
        while wanted() and not self.stopping(ASK_PAUSE_S):
            try:
                return question()
            except TransientError as error:
                log.warning("asking again for committed offsets: %s", error)
        return None

    def _starts(self, answers: list[KafkaPartition]) -> list[Start]:
        places = [(answer.topic, answer.partition) for answer in answers]
        ends = self.ends(places)
        firsts = self.beginnings([place for place in places if self.consumed.is_own(place[0])])
        starts = [
            self._start(each, ends.get(place), firsts.get(place)) for each, place in zip(answers, places, strict=True)
        ]
        log.info("assigned: %s", ", ".join(f"{s.topic}[{s.partition}] from {_shown(s.offset)}" for s in starts))
        return starts

    def _start(self, answer: KafkaPartition, end: int | None, first: int | None) -> Start:
        topic, recorded = answer.topic, decode_metadata(answer.metadata, answer.offset)
        commits = CommitMetadata(
            self.wait_topic, self.consumed.id_of(topic), redeliver_to=self.consumed.redeliver_to(topic)
        )
        if answer.offset < 0:
            return Start(topic, answer.partition, None, None, end, commits)
        start = Start(topic, answer.partition, answer.offset, recorded, end, commits)
        if recorded is not None:
            self._check(recorded.wait_topic)
        if self.consumed.is_own(topic):
            start, warning = own_start(start, first)
        elif recorded is None:
            warning = "starts at an offset that another program committed, and nothing before it is handled"
        else:
            warning = None
            self.consumed.require_committed_in(topic, recorded.input_topic_id)
            require_same_identities(start)
        if warning is not None:
            log.warning("%s[%d] %s", topic, answer.partition, warning)
        return start

    def _check(self, recorded: TopicIdentity) -> None:
        if recorded.topic == self.wait_topic.topic:
            require_same_identity(recorded, self.wait_topic)
        else:
            log.warning(
                "this group registered its records in wait topic %s and now uses %s. Keep a sweeper on the old topic "
                "until it is empty",
                recorded.topic,
                self.wait_topic.topic,
            )


def _shown(offset: int | None) -> str:
    return "the beginning" if offset is None else str(offset)


class PendingStarts:
    """Partitions that are assigned and can't start yet, because the broker hasn't returned their committed offsets.

    The requests run in threads, so that neither a rebalance nor records in flight wait for a slow broker. Everything
    else runs in the event loop's thread.

    Args:
        start_offsets: returns the start offsets.
        loop: the event loop.
        fault: where an error that ends the process is reported.

    Attributes:
        answers: start offsets that aren't consumed yet, each with its request.
    """

    def __init__(self, start_offsets: StartOffsets, loop: asyncio.AbstractEventLoop, fault: Fault) -> None:
        self._start_offsets = start_offsets
        self._loop = loop
        self._fault = fault
        # The last request for each partition: one that was revoked and assigned again may have two.
        self._requests: dict[TopicPartition, object] = {}
        self.answers: list[tuple[object, Start]] = []

    def __len__(self) -> int:
        """Return how many partitions can't start yet; from any thread."""
        return len(self._requests)

    def ask(self, partitions: list[KafkaPartition]) -> None:
        """Request the start offsets of new partitions."""
        request = object()
        self._requests.update({(p.topic, p.partition): request for p in partitions})
        # A daemon: a broker that doesn't answer must not keep the process from ending.
        threading.Thread(target=self._ask, args=(request, list(partitions)), name="start-offsets", daemon=True).start()

    def forget(self, places: Iterable[TopicPartition]) -> None:
        """Drop the requests of partitions that were revoked."""
        for place in places:
            self._requests.pop(place, None)

    def end(self) -> None:
        """Drop all requests."""
        self._requests.clear()
        self.answers.clear()

    def take(self) -> list[Start]:
        """Return each new start offset once, except those of partitions that were revoked meanwhile."""
        answers, self.answers = self.answers, []
        starts = [start for request, start in answers if self._requests.get((start.topic, start.partition)) is request]
        self.forget((start.topic, start.partition) for start in starts)
        return starts

    def _ask(self, request: object, partitions: list[KafkaPartition]) -> None:
        try:
            starts = self._start_offsets.later(partitions, lambda: request in list(self._requests.values()))
        except Exception as error:  # noqa: BLE001 - whatever it is ends the process; the loop raises it
            self._fault.report(error)
            return
        answers = [(request, start) for start in starts]
        # The loop may be closed by now, and the answers are of no use then.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(lambda: self.answers.extend(answers))
