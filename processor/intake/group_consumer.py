"""The member of the consumer group: polls, commits and rebalances, with all state in the event loop's thread."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from processor.intake.commit_answers import commit_answer
from processor.intake.gone_positions import GonePositions
from processor.intake.group_config import group_config, rebalances_incrementally
from processor.intake.pauses import Pauses
from processor.intake.polled_messages import PolledMessages
from processor.intake.poller import Poller
from processor.intake.record_source import OnRevoke, RecordSource
from processor.intake.start_decision import Start
from processor.intake.start_offsets import PendingStarts, StartOffsets
from processor.protocol.effects import Commit, Pause, Release, Resume
from processor.protocol.events import Lost, Polled
from wait_registry.kafka.clients import usable_settings
from wait_registry.kafka.commit_metadata import CommitMetadata
from wait_registry.kafka.errors import TOPIC_GONE
from wait_registry.records.topics import TopicPartition

log = logging.getLogger(__name__)

T = TypeVar("T")

LEAST_LEAVE_S = 1.0
READ_ENDS_EVERY_S = 0.25


@dataclass(eq=False)
class GroupConsumer(RecordSource):
    """One member of the consumer group.

    The consumer is polled in a thread of its own, where the rebalance callbacks run. Their work is done in the event
    loop's thread, so that all state has one owner, and the loop continues while a rebalance waits for calls to end.

    Args:
        start_offsets: where new partitions start.

    Attributes:
        pending_starts: the partitions that can't start yet.
    """

    start_offsets: StartOffsets

    def __post_init__(self) -> None:
        super().__post_init__()
        processor, fault = self.settings.processor, self.inbox.fault
        self._announced = (processor.uncommitted_max, processor.registration.value)
        self._fault = fault
        self._incremental = rebalances_incrementally(processor)
        self._loop = asyncio.get_running_loop()
        self._gone = GonePositions(self.assigned, self.start_offsets, self.membership.join_again, fault)
        self.pending_starts = PendingStarts(self.start_offsets, self._loop, fault)
        self._on_revoke: OnRevoke | None = None
        self._ends_read_s = 0.0
        # By partition, of its last assignment here.
        self._metadata: dict[TopicPartition, CommitMetadata] = {}
        self._closing = False
        self._topics = self.start_offsets.consumed.names
        with usable_settings():
            self.consumer = Consumer(self._config())
        messages = PolledMessages(processor.group, self.assigned, fault, self._gone.note, TOPIC_GONE)
        self._poller = Poller(self.consumer, self.thread, messages, self.gathering)
        self._pauses = Pauses(self.consumer, self.assigned)

    def _config(self) -> dict[str, Any]:
        return {
            **group_config(self.settings),
            # After the last transaction's marker, no other event shows that the end of the log is reached.
            "enable.partition.eof": True,
            "error_cb": self.connection.on_error,
            **self.connection.stats_config("consumer"),
            "on_commit": self.on_commit,
        }

    def start(self) -> None:
        """Join the group."""
        # Now or never: while a rebalance callback waits for the event loop, the client doesn't answer this question.
        self.membership.started(str(self.consumer.memberid() or ""))
        self._join()

    def resubscribe(self, topics: Iterable[str]) -> None:
        """Consume these topics from now on; this member stays in the group, which assigns partitions again."""
        self._topics = list(topics)
        self._in_thread(self._join)

    def _join(self) -> None:
        self.consumer.subscribe(self._topics, on_assign=self.on_assign, on_revoke=self.on_revoke, on_lost=self.on_lost)

    def _join_again(self) -> None:
        self.consumer.unsubscribe()
        self._join()

    def _in_thread(self, work: Callable[[], None]) -> None:
        """Do this in the consumer's thread when the poll has ended, unless the consumer is being closed."""

        def unless_closing() -> None:
            if not self._closing:
                work()

        if not self._closing:
            self.thread.submit(self._guarded, unless_closing, None)

    async def poll(
        self, count: int, timeout_s: float, fetching: Iterable[Pause | Resume], on_revoke: OnRevoke
    ) -> list[Polled]:
        """Poll in the consumer's thread, as `RecordSource.poll`.

        Until the poll returns, the event loop must not call the consumer: the client has it wait until then, and a
        rebalance within the poll waits for the event loop.
        """
        self._on_revoke = on_revoke
        if self.membership.must_join_again():
            self._in_thread(self._join_again)
        self._pauses.apply(fetching)
        self._read_ends()
        if self.pending_starts.answers and (starts := self.pending_starts.take()):
            self._assign(self.consumer, starts)
            self._take_over(starts)
        records = await self._poller.poll(count, timeout_s)
        if self._gone:
            # A daemon: a broker that doesn't answer must not keep the process from ending.
            check = (self._gone.check(), None)
            threading.Thread(target=self._guarded, args=check, name="gone-positions", daemon=True).start()
        return self.deliveries.polled(records)

    @property
    def paused(self) -> set[TopicPartition]:
        """The partitions that aren't fetched now."""
        return self._pauses.places

    def offsets(self, commit: Commit | Release) -> list[KafkaPartition]:
        """Return the offsets for the client, with what they rely on as metadata."""
        return [
            KafkaPartition(*place, offset, self._metadata[place].with_recorded(*commit.recorded[place]).encode(offset))
            for place, offset in commit.offsets.items()
        ]

    def commit(self, commit: Commit) -> None:
        """Start an asynchronous commit, not during a poll."""
        offsets = self.offsets(commit)
        try:
            if self._closing:
                raise KafkaException(KafkaError(KafkaError._DESTROY, "the consumer is being closed"))
            self.consumer.commit(offsets=offsets, asynchronous=True)
        except KafkaException as error:
            self._commit_answered(error.args[0], offsets, commit)

    def _commit_answered(
        self, error: KafkaError | None, partitions: list[KafkaPartition], to: Commit | Release | None = None
    ) -> None:
        self.inbox.put(commit_answer(error, partitions, self._fault, to))

    def rewind(self, place: TopicPartition, offset: int) -> None:
        """Have a partition, which is to be paused, continue at an offset when it is fetched again."""
        if (owner := self.assigned.get(place)) is not None:
            owner.rewind(offset)

    def _read_ends(self) -> None:
        """Note the ends of the assigned partitions as the last fetch answers gave them, for the lag."""
        if (now_s := time.monotonic()) - self._ends_read_s < READ_ENDS_EVERY_S:
            return
        self._ends_read_s = now_s
        for owner in self.assigned.values():
            partition = KafkaPartition(owner.topic, owner.partition)
            owner.update_watermarks(*self.consumer.get_watermark_offsets(partition, cached=True))

    async def close(self, limit_s: float, on_revoke: OnRevoke) -> None:
        """Leave the group, as `RecordSource.close`; after the limit, the group notices at the end of the session.

        Args:
            limit_s: how long leaving may take, s; it is given a second at least.
            on_revoke: gives up what is still assigned.
        """
        self._on_revoke = on_revoke
        self._closing = True
        self.pending_starts.end()
        await self.thread.close(self.consumer.close, max(LEAST_LEAVE_S, limit_s))

    def on_assign(self, consumer: Consumer, partitions: list[KafkaPartition]) -> None:
        """Take partitions over (the client's callback)."""
        nowhere: list[Start] | None = []
        starts = self._guarded(lambda: self._starts_at_once(consumer, partitions), nowhere)
        member_id = str(consumer.memberid() or "")

        def take_over() -> None:
            self._release_unrevoked(partitions)
            self.membership.assigned(member_id, ((p.topic, p.partition) for p in partitions))
            if starts is not None:
                self._take_over(starts)
            elif not self._closing:
                self.pending_starts.ask(partitions)

        self._on_loop(take_over)
        if self._fault.error is not None:
            return
        # The client gets no partition before its start is known: librdkafka uses a position that it had to look up even
        # if another one has been set or assigned before the answer.
        self._guarded(lambda: self._assign(consumer, starts or []), None)

    def _starts_at_once(self, consumer: Consumer, partitions: list[KafkaPartition]) -> list[Start] | None:
        starts = self.start_offsets.at_once(consumer, partitions)
        return None if starts is None else self.start_offsets.announced(consumer, starts, *self._announced)

    def _release_unrevoked(self, partitions: list[KafkaPartition]) -> None:
        """Release what the client assigns again without having revoked it.

        Seen with an eager protocol when a topic got more partitions during an assignment. The records of the former
        assignment would fill the prefetch until the process ends.
        """
        again = {(p.topic, p.partition) for p in partitions} if self._incremental else self.assigned
        places = [place for place in list(again) if self.assigned.pop(place, None) is not None]
        if places:
            log.warning("assigned again without a revocation: %s", ", ".join(f"{t}[{p}]" for t, p in places))
            self._lose(places)

    def _lose(self, places: list[TopicPartition]) -> None:
        self.inbox.stats.rebalanced("lost")
        log.warning("partitions lost: %s", ", ".join(f"{topic}[{number}]" for topic, number in places))
        self.inbox.put(Lost(places))

    def _assign(self, consumer: Consumer, starts: list[Start]) -> None:
        # Eager protocols assign everything at once, and one request asks for all of it.
        assign = consumer.incremental_assign if self._incremental else consumer.assign
        assign([start.for_client() for start in starts])

    def _unassign(self, consumer: Consumer, partitions: list[KafkaPartition]) -> None:
        if not self._incremental:
            consumer.unassign()
            return
        try:
            there = {(p.topic, p.partition) for p in consumer.assignment()}
            consumer.incremental_unassign([p for p in partitions if (p.topic, p.partition) in there])
        except KafkaException as error:
            # A client that is being closed has given everything up.
            if error.args[0].code() != KafkaError._DESTROY:
                raise

    def _take_over(self, starts: Iterable[Start]) -> None:
        self._metadata.update({start[:2]: start.commits for start in starts if start.commits is not None})
        super()._take_over(starts)

    def on_revoke(self, consumer: Consumer, partitions: list[KafkaPartition]) -> None:
        """Give partitions up (the client's callback)."""

        async def give_up() -> Release:
            if not self._incremental:
                self.membership.lost()
            assert self._on_revoke is not None, "callbacks come within a poll or the end"
            return await self._on_revoke(self._given_up(partitions))

        nothing: Release | None = None
        release = self._guarded(lambda: asyncio.run_coroutine_threadsafe(give_up(), self._loop).result(), nothing)
        if release is not None and (offsets := self.offsets(release)):
            # In the callback's own thread: librdkafka answers no other thread's synchronous commit before it returns.
            error, answers = self._commit_last(offsets)
            self._on_loop(lambda: self._commit_answered(error, answers, release))
        self._guarded(lambda: self._unassign(consumer, partitions), None)

    def on_lost(self, consumer: Consumer, partitions: list[KafkaPartition]) -> None:
        """Forget partitions that are gone already (the client's callback)."""

        def give_up() -> None:
            self.membership.lost()
            self._lose(self._given_up(partitions))

        self._on_loop(give_up)
        self._guarded(lambda: self._unassign(consumer, partitions), None)

    def _given_up(self, partitions: list[KafkaPartition]) -> list[TopicPartition]:
        places = [(p.topic, p.partition) for p in partitions]
        self.membership.released(places)
        self._pauses.forget(places)
        self.pending_starts.forget(places)
        return [place for place in places if self.assigned.pop(place, None) is not None]

    def _commit_last(self, offsets: list[KafkaPartition]) -> tuple[KafkaError | None, list[KafkaPartition]]:
        try:
            return None, self.consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            return error.args[0], offsets

    def on_commit(self, error: KafkaError | None, partitions: list[KafkaPartition]) -> None:
        """Pass the answer to a commit to the event loop (the client's callback)."""
        if error is None:
            self.connection.answered()
        self._loop.call_soon_threadsafe(self._guarded, partial(self._commit_answered, error, partitions), None)

    def _on_loop(self, work: Callable[[], None]) -> None:
        """Do a callback's work in the event loop's thread, now, and report what it raises."""
        done: Future[None] = Future()

        def run() -> None:
            self._guarded(work, None)
            done.set_result(None)

        self._loop.call_soon_threadsafe(run)
        done.result()

    def _guarded(self, work: Callable[[], T], otherwise: T) -> T:
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - an exception must not cross the C callback; the loop raises it
            self._fault.report(error)
            return otherwise
