"""Executes the effects of the engine with real clients, and reports what follows: the loop of the processor."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import TIMESTAMP_CREATE_TIME, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as Answer

from processor.calls.worker_pool import WorkerPool
from processor.fault import Fault
from processor.health.clock_watch import ClockWatch
from processor.health.stats import Stats
from processor.intake.delivery import Consumer, polled
from processor.intake.partition_start import Start as StartOffset
from processor.intake.record_source import RecordSource
from processor.intake.subscription import SubscribedTopic
from processor.protocol.effects import (
    Cancel,
    Commit,
    Pause,
    Publish,
    Register,
    Release,
    Resume,
    Rewind,
    Start,
    WriteTombstones,
)
from processor.protocol.engine import Engine
from processor.protocol.events import (
    Assigned,
    CallsEnded,
    CommitAnswered,
    Draining,
    Event,
    Instant,
    Lost,
    PollingWithoutRoom,
    ReadTo,
    Revoked,
    Revoking,
    SlotsBlocked,
    Tick,
)
from processor.protocol.record import Entry, State
from processor.protocol.results import Result
from processor.writing.outbox import Outbox
from processor.writing.outcomes import OUTCOMES, Outcomes
from processor.writing.wait_records import WaitRecords
from wait_registry.clock import Clock
from wait_registry.kafka.errors import TOPIC_GONE, is_transient, kafka_failure
from wait_registry.records.topics import TopicPartition

log = logging.getLogger(__name__)

NOTHING_CAME_S = 0.001
IDLE_S = 0.25
# A member must poll to take part in rebalances, even without room.
POLL_EVERY_S = 0.5
HOUSEKEEPING_S = 0.25
FINISH_STEP_S = 0.005
NOTHING_TO_RELEASE = Release({}, {})

# Part of a rebalance: the callback that follows says which partitions are revoked.
REBALANCING = frozenset(
    {
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.FENCED_MEMBER_EPOCH,
        KafkaError.STALE_MEMBER_EPOCH,
        KafkaError._ASSIGNMENT_LOST,
        KafkaError._NO_OFFSET,
        KafkaError._STATE,
        KafkaError._DESTROY,
    }
)


class Shell:
    """Runs the engine on real clients.

    Every event goes through `step`, in the event loop's thread. A revocation is the one place where a callback of the
    client waits for effects (`revoked`): the client gives the partitions up when it returns.

    Args:
        engine: decides.
        consumer: makes the source of records, which calls this shell.
        outbox: polled here and nowhere else while the loop runs.
        by: who consumes.
        topics: the consumed topics, by name.
        pool: makes the workers, which report ended calls to the given function.
        clock: of this host.
        clock_watch: gets the append times of polled records.
        finish_s: how long a rebalance waits for calls and wait records of the revoked partitions, s.
    """

    def __init__(
        self,
        engine: Engine,
        consumer: Callable[[Shell], RecordSource],
        by: Consumer,
        topics: Mapping[str, SubscribedTopic],
        outbox: Outbox,
        wait_records: WaitRecords,
        outcomes: Outcomes,
        pool: Callable[[Callable[[], None]], WorkerPool],
        clock: Clock,
        clock_watch: ClockWatch,
        fault: Fault,
        stats: Stats,
        finish_s: float,
    ) -> None:
        self.engine = engine
        self._by = by
        self._topics = topics
        self._outbox = outbox
        self._wait_records = wait_records
        self._outcomes = outcomes
        self._clock = clock
        self._clock_watch = clock_watch
        self._fault = fault
        self._stats = stats
        self._finish_s = finish_s
        self._loop = asyncio.get_running_loop()
        self._polled_s = 0.0
        self._housekeeping_s = 0.0
        # What the client can't do now: it has other callers wait while it polls or assigns.
        self._commit: Commit | None = None
        self._fetching: list[Pause | Resume] = []
        self._with_own_times: set[str] = set()
        self._release = NOTHING_TO_RELEASE
        self._execute: dict[type, Callable[[Any], None]] = {
            Register: wait_records.write,
            Start: lambda effect: self.pool.start(effect.entries),
            WriteTombstones: lambda effect: outcomes.write_tombstones(effect.entries),
            Publish: lambda effect: outcomes.publish(effect.entries),
            Commit: self._send_commit,
            Cancel: lambda effect: self.pool.cancel(effect.entries),
            Pause: self._fetching.append,
            Resume: self._fetching.append,
            Rewind: lambda effect: self.consumer.rewind(*effect),
            Release: self._set_release,
        }
        self.pool = pool(self._take_ended)
        self.consumer = consumer(self)

    # ---- the loop

    async def run_once(self) -> None:
        """Do what is due, then yield to the handlers; if nothing is due, wait for a record or a moment.

        Raises:
            WaitRegistryError: a callback's error, or a fatal error of a client; the process must end.
        """
        try:
            self.take_reports()
            came = await self._poll()
            self._fault.raise_if_any()
            self.step(SlotsBlocked(self.pool.blocked()))
            self.step(Tick())
            if not came and not self._quiet():
                await asyncio.sleep(NOTHING_CAME_S)
        except KafkaException as error:
            raise kafka_failure(error, "consuming") from error

    def take_reports(self) -> None:
        """Take what the broker has answered; send what waits for space."""
        self._outbox.poll()
        events = (*self._wait_records.events(), *self._outcomes.events())
        # Before anything starts that a failure, or a stepped clock, forbids.
        self._fault.raise_if_any()
        for event in events:
            self.step(event)

    def step(self, event: Event, now: Instant | None = None) -> None:
        """Pass an event to the engine and do what follows; now, unless several events are of one moment."""
        for effect in self.engine.step(event, now or self._now()):
            self._execute[type(effect)](effect)

    def _now(self) -> Instant:
        return Instant(self._clock.now_ms(), self._clock.monotonic())

    def run_without_polling(self) -> None:
        """Do what is due for the records polled so far, for the drain."""
        self.take_reports()
        self.step(Tick(polled=False))

    def limit_finish(self, limit_s: float) -> None:
        """Limit how long the last rebalance waits, s."""
        self._finish_s = min(self._finish_s, limit_s)

    def _quiet(self) -> bool:
        """Return whether no answer of the broker is due, and a poll is."""
        return not len(self._outbox) and not self.engine.paused and self.engine.is_worth_a_poll(self._room())

    def _room(self) -> int:
        return 0 if self._outbox.full else self.engine.room()

    async def _poll(self) -> bool:
        """Poll if it is due, and wait for a record if nothing else is to be done; return whether any came."""
        now_s = self._clock.monotonic()
        room = self._room()
        due = self.engine.is_worth_a_poll(room) or now_s - self._polled_s >= self._pause_s()
        if due and room <= 0:
            self.step(PollingWithoutRoom())
        for effect in self._fetching:
            (self.consumer.pause if isinstance(effect, Pause) else self.consumer.resume)(effect.places)
        self._fetching.clear()
        if self._commit is not None:
            commit, self._commit = self._commit, None
            self._send_commit(commit)
        if now_s - self._housekeeping_s >= HOUSEKEEPING_S:
            self._housekeeping_s = now_s
            self.consumer.read_ends()
            self._pass_positions_on()
        if not due:
            return False
        self._polled_s = now_s
        timeout_s = min(IDLE_S, self.engine.wake_s(now_s)) if self._quiet() else 0
        return self._take(await self.consumer.poll(max(1, room), timeout_s))

    def _pause_s(self) -> float:
        """Return the time between two polls without room, s: they may return records, for which there is none.

        The answer of a commit comes with a poll only. While calls wait for one, each pause is three times as long as
        the wait so far.
        """
        since_s = self.engine.commit_awaited_since_s()
        return min(POLL_EVERY_S, max(NOTHING_CAME_S, 3 * (self._polled_s - since_s)))

    def _take(self, there: Mapping[TopicPartition, list[Message]]) -> bool:
        """Pass polled records on; return whether there were any."""
        if self.engine.draining:
            return False
        now = self._now()
        for place, messages in there.items():
            self._clock_watch.observe_polled(messages[-1].timestamp())
            topic = self._topics[place[0]]
            if topic.retries:
                self._check_timestamps(topic, messages)
            event = polled(messages, place, self._by, topic)
            partition = self.engine.partitions[place]
            before = partition.polled
            self.step(event, now)
            # Records that aren't due are polled again.
            self._stats.consumed[place[0]] += partition.polled - before
            self._stats.passed_over += sum(offset < partition.position for offset in event.foreign)
        return bool(there)

    def _check_timestamps(self, topic: SubscribedTopic, messages: list[Message]) -> None:
        """Warn once of a retry topic whose timestamp type was changed: at the start it was right."""
        if topic.name in self._with_own_times or all(each.timestamp()[0] != TIMESTAMP_CREATE_TIME for each in messages):
            return
        self._with_own_times.add(topic.name)
        log.warning(
            "records of the retry topic %s have timestamps of their producers instead of the broker's. Each waits for "
            "%g s after its timestamp or after it was seen in the log, whichever is earlier. To fix it: "
            "`waitreg topics check`",
            topic.name,
            topic.delay_s,
        )

    def _pass_positions_on(self) -> None:
        """Have commits pass the transaction markers and aborted records behind what was polled."""
        for owner in self.consumer.assigned.values():
            partition = self.engine.partitions.get(owner.place)
            if partition is not None and owner.position > partition.position:
                self.step(ReadTo(owner.place, owner.position))

    def _take_ended(self) -> None:
        try:
            self.step(SlotsBlocked(self.pool.blocked()))
            ended = self.pool.take_ended()
            self.step(CallsEnded(ended))
            self._count_unregistered(ended)
        except Exception as error:  # noqa: BLE001 - the event loop would only log it; the loop raises it
            self._fault.report(error)

    def _count_unregistered(self, ended: list[tuple[Entry, Result | None]]) -> None:
        """Count records that were settled without a registration; the others are counted by their tombstones."""
        settled = State.SETTLED
        kinds = Counter(
            result.__class__ for entry, result in ended if entry.lifetime is None and entry.state is settled
        )
        for kind, count in kinds.items():
            self._stats.settled[OUTCOMES[kind].value] += count

    # ---- commits

    def _send_commit(self, commit: Commit) -> None:
        if self.consumer.polling:
            self._commit = commit
            return
        try:
            self.consumer.commit(commit)
        except KafkaException as error:
            answers = [Answer(*place, offset) for place, offset in commit.offsets.items()]
            self.commit_answered(error.args[0], answers, commit)

    def commit_answered(
        self, error: KafkaError | None, partitions: list[Answer], to: Commit | Release | None = None
    ) -> None:
        """Take the answer of a commit, each partition's by itself.

        Only a confirmation shows what the coordinator has. The client repeats a commit by itself if its answer is lost
        or says that it may be late, and returns the last answer only. So even "unknown member" may answer the
        repetition of a commit that was written.
        """
        confirmed: dict[TopicPartition, int] = {}
        failed: list[TopicPartition] = []
        for answer in partitions:
            refusal = error or answer.error
            place = (answer.topic, answer.partition)
            if refusal is None:
                confirmed[place] = answer.offset
                self._stats.committed(self._clock.now_ms())
            else:
                failed.append(place)
                self._commit_failed(refusal, f"{answer.topic}[{answer.partition}]")
        self.step(CommitAnswered(confirmed, failed, to))

    def _commit_failed(self, error: KafkaError, what: str) -> None:
        self._stats.commits["failed"] += 1
        if error.code() in REBALANCING | TOPIC_GONE or is_transient(error):
            log.warning("commit of %s failed, it will be tried again: %s (%s)", what, error.str(), error.name())
        else:
            self._fault.report(kafka_failure(error, f"committing offsets of {what}"))

    # ---- the consumer's callbacks

    def assigned(self, starts: list[StartOffset]) -> None:
        """Take partitions over."""
        self._stats.rebalances["assigned"] += 1
        for start in starts:
            recorded, topic = start.recorded, self._topics[start.topic]
            self.step(
                Assigned(
                    (start.topic, start.partition),
                    start.offset,
                    None if recorded is None else recorded.uncommitted_max,
                    None if recorded is None else recorded.registration,
                    start.end,
                    topic.delay_s,
                    topic.retries,
                )
            )

    async def revoked(self, places: list[TopicPartition]) -> Release:
        """Wait for calls and wait records in flight, release the partitions, and return what to commit last."""
        self._stats.rebalances["revoked"] += 1
        if places:
            self.step(Revoking(places))
            await self._finish(places)
        self._drop_commit()
        if not places:
            return NOTHING_TO_RELEASE
        if self._fault.error is not None:
            # The offsets may rely on what has failed: commit nothing more.
            self.step(Lost(places))
            return NOTHING_TO_RELEASE
        self.step(Revoked(places))
        return self._release

    def _set_release(self, release: Release) -> None:
        self._release = release

    def lost(self, places: list[TopicPartition]) -> None:
        """Release partitions that are lost already."""
        self._stats.rebalances["lost"] += 1
        log.warning("partitions lost: %s", ", ".join(f"{topic}[{number}]" for topic, number in places))
        self._drop_commit()
        self.step(Lost(places))

    def _drop_commit(self) -> None:
        """Don't send a commit from before a rebalance: another member may have committed more by now."""
        if self._commit is not None:
            places = list(self._commit.offsets)
            self._commit = None
            self.step(CommitAnswered({}, places))

    async def _finish(self, places: list[TopicPartition]) -> None:
        """Wait until the next owner would handle nothing again, up to the limit of a rebalance."""
        end_s = time.monotonic() + self._finish_s
        while (unfinished := self.engine.unfinished(places)) and self._fault.error is None:
            if time.monotonic() >= end_s:
                log.warning(
                    "%d calls, wait records or dead letters of revoked partitions didn't end in time", unfinished
                )
                return
            await asyncio.sleep(FINISH_STEP_S)
            try:
                self.take_reports()
                # In `deferred` slow calls are registered, and need not end.
                self.step(Tick())
            except Exception as error:  # noqa: BLE001 - the loop raises it, when the partitions are given up
                self._fault.report(error)

    def drain(self) -> None:
        """Poll nothing more."""
        self.step(Draining())
