"""The loop of the processor: takes what is reported, steps the engine, and has its effects executed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaException

from processor.calls.worker_pool import WorkerPool
from processor.inbox import Inbox
from processor.intake.record_source import RecordSource
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
    CallsEnded,
    CommitAnswered,
    EndsSeen,
    Event,
    Instant,
    Lost,
    Polled,
    PollingWithoutRoom,
    ReadTo,
    Revoked,
    Revoking,
    SlotsBlocked,
    Tick,
)
from processor.protocol.record import State
from processor.writing.outcomes import OUTCOMES
from processor.writing.writers import Writers
from wait_registry.clock import Clock
from wait_registry.kafka.errors import kafka_failure
from wait_registry.records.topics import TopicPartition

log = logging.getLogger(__name__)

# How long an iteration waits: for an answer of the broker that records wait for, unless records are gathered; for room,
# or the answer to a tombstone; for a record, if nothing else is due. A record ends the wait, and so does the end of a
# call that makes room.
ANSWER_S = 0.001
REST_S = 0.01
IDLE_S = 0.25
# A member must poll to take part in rebalances, even without room.
POLL_EVERY_S = 0.5
PASS_ON_EVERY_S = 0.25
FINISH_STEP_S = 0.005
NOTHING_TO_RELEASE = Release({}, {})
# What is done although a fault ends the process: the outcomes of calls that have ended.
OUTCOMES_OF_CALLS = frozenset({WriteTombstones, Publish})


class Loop:
    """Runs the engine on real clients.

    Every event goes through `step`, in the event loop's thread. A revocation is the one place where a callback of the
    client waits for effects (`give_up`): the client gives the partitions up when it returns.

    Args:
        engine: decides.
        source: gives records, and takes commits.
        writers: polled here and nowhere else while the loop runs.
        calls: runs the calls of the handler.
        inbox: has what these report.
        clock: of this host.
    """

    def __init__(
        self, engine: Engine, source: RecordSource, writers: Writers, calls: WorkerPool, inbox: Inbox, clock: Clock
    ) -> None:
        self.engine = engine
        self.source = source
        self.writers = writers
        self.calls = calls
        self._inbox = inbox
        self._fault = inbox.fault
        self._stats = inbox.stats
        self._clock = clock
        self._finish_s = writers.flush_timeout_s
        self._polled_s = 0.0
        self._passed_on_s = 0.0
        # While the client polls or assigns, other callers of it wait.
        self._polling = False
        self._commit: Commit | None = None
        self._fetching: list[Pause | Resume] = []
        self._release = NOTHING_TO_RELEASE
        self._resting: asyncio.Future[None] | None = None
        self._execute: dict[type, Callable[[Any], None]] = {
            Register: writers.wait_records.write,
            Start: lambda effect: calls.start(effect.entries),
            WriteTombstones: lambda effect: writers.outcomes.write_tombstones(effect.entries),
            Publish: lambda effect: writers.outcomes.publish(effect.entries),
            Commit: self._send_commit,
            Cancel: lambda effect: calls.cancel(effect.entries),
            Pause: self._fetching.append,
            Resume: self._fetching.append,
            Rewind: lambda effect: source.rewind(*effect),
            Release: self._set_release,
        }
        inbox.read_by(self._read_inbox)

    # ---- the loop

    async def run_once(self) -> None:
        """Do what is due, then yield to the handlers, until a record comes, there is room, or something else is due.

        Raises:
            WaitRegistryError: a callback's error, or a fatal error of a client; the process must end.
        """
        try:
            self.take_reports()
            polled = await self._poll()
            # Their partitions may have been assigned within the poll.
            self._take_inbox()
            self._fault.raise_if_any()
            self._take(polled)
            self._fault.raise_if_any()
            self.step(SlotsBlocked(self.calls.blocked()))
            self.step(Tick())
        except KafkaException as error:
            raise kafka_failure(error, "consuming") from error

    def take_reports(self) -> None:
        """Take what the broker has answered; send what waits for space."""
        self.writers.poll()
        # Before anything starts that a failure, or a stepped clock, forbids.
        self._fault.raise_if_any()
        self._take_inbox()

    def step(self, event: Event, now: Instant | None = None) -> None:
        """Pass an event to the engine and do what follows; now, unless several events are of one moment.

        After a fault, nothing follows but the outcomes of calls.
        """
        for effect in self.engine.step(event, now or self._now()):
            kind = type(effect)
            if self._fault.error is None or kind in OUTCOMES_OF_CALLS:
                self._execute[kind](effect)

    def _now(self) -> Instant:
        return Instant(self._clock.now_ms(), self._clock.monotonic())

    def run_without_polling(self) -> None:
        """Do what is due for the records polled so far, for the drain."""
        self.take_reports()
        self.step(Tick(polled=False))

    async def flush(self, timeout_s: float) -> int:
        """Wait for the broker's answers, also to the tombstones that follow from them.

        Args:
            timeout_s: how long at most, s.

        Returns:
            How many outcomes have no answer.
        """
        end_s = self._clock.monotonic() + timeout_s
        while self.writers.waiting and self._clock.monotonic() < end_s:
            self.writers.poll()
            self._read_inbox()
            await asyncio.sleep(FINISH_STEP_S)
        return self.writers.outbox.unacknowledged

    def limit_finish(self, limit_s: float) -> None:
        """Limit how long the last rebalance waits, s."""
        self._finish_s = min(self._finish_s, limit_s)

    def ends_seen(self, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Note where the logs of delayed partitions end; return below which offset all records of each are due."""
        self.step(EndsSeen(ends))
        seen = {place: self.engine.partitions.get(place) for place in ends}
        return {place: p.due_times.seen_end for place, p in seen.items() if p is not None and p.due_times is not None}

    # ---- what is reported

    def _read_inbox(self) -> None:
        try:
            self._take_inbox()
        except Exception as error:  # noqa: BLE001 - the event loop would only log it; the loop raises it
            self._fault.report(error)

    def _take_inbox(self) -> None:
        while (event := self._inbox.take()) is not None:
            kind = type(event)
            if kind is CallsEnded:
                self.step(SlotsBlocked(self.calls.blocked()))
            elif kind is Lost:
                self._drop_commit()
            self.step(event)
            if kind is CallsEnded:
                self._count_unregistered(event)  # type: ignore[arg-type]
            elif kind is CommitAnswered:
                self._stats.commit_answered(event, self._clock.now_ms())  # type: ignore[arg-type]
        if self._resting is not None and self.engine.flow.is_worth_a_poll(self._room()):
            self._end_rest(self._resting)

    def _count_unregistered(self, event: CallsEnded) -> None:
        """Count records that were settled without a registration; the others are counted by their tombstones."""
        settled = State.SETTLED
        kinds = Counter(
            result.__class__ for entry, result in event.calls if entry.lifetime is None and entry.state is settled
        )
        for kind, count in kinds.items():
            self._stats.count_settled(OUTCOMES[kind], count)

    # ---- polls

    def _longest_wait_s(self, now_s: float) -> float:
        """Return how long this iteration may wait, s; what was due before is waited for in short steps."""
        answer_s = max(ANSWER_S, self.source.gathering.step_s)
        longest_s = answer_s if self.writers.awaited else REST_S if self.writers.waiting else IDLE_S
        return max(ANSWER_S, min(longest_s, self.engine.wake_s(now_s)))

    async def _rest(self, limit_s: float) -> None:
        """Wait until there is room for a poll, up to a limit, s."""
        loop = asyncio.get_running_loop()
        self._resting = resting = loop.create_future()
        limit = loop.call_later(limit_s, self._end_rest, resting)
        try:
            await resting
        finally:
            limit.cancel()
            self._resting = None

    @staticmethod
    def _end_rest(resting: asyncio.Future[None]) -> None:
        if not resting.done():
            resting.set_result(None)

    def _room(self) -> int:
        return 0 if self.writers.full else self.engine.flow.room()

    async def _poll(self) -> Sequence[Polled]:
        """Poll if it is due, and wait for a record; else wait until it is."""
        now_s, room = self._clock.monotonic(), self._room()
        is_worth_it, pause_s = self.engine.flow.is_worth_a_poll(room), self._pause_s() - (now_s - self._polled_s)
        due = is_worth_it or pause_s <= 0 or (room > 0 and bool(self._fetching))
        if due and room <= 0:
            self.step(PollingWithoutRoom())
        if self._commit is not None:
            commit, self._commit = self._commit, None
            self.source.commit(commit)
        if now_s - self._passed_on_s >= PASS_ON_EVERY_S:
            self._passed_on_s = now_s
            self._pass_positions_on()
        if not due:
            await self._rest(min(pause_s, REST_S, self._longest_wait_s(now_s)))
            return ()
        self._polled_s = now_s
        timeout_s = self._longest_wait_s(now_s) if is_worth_it else 0
        fetching = tuple(self._fetching)
        self._fetching.clear()
        # Not in a `finally`: if this is cancelled, the client continues to poll, and nothing polls or commits any more.
        self._polling = True
        polled = await self.source.poll(max(1, room), timeout_s, fetching, self.give_up)
        self._polling = False
        return polled

    def _pause_s(self) -> float:
        """Return the time between two polls without room, s: they may return records, for which there is none.

        The answer of a commit comes with a poll only. While calls wait for one, each pause is three times as long as
        the wait so far.
        """
        since_s = self.engine.commit_awaited_since_s()
        return min(POLL_EVERY_S, max(ANSWER_S, 3 * (self._polled_s - since_s)))

    def _take(self, polled: Sequence[Polled]) -> None:
        """Pass polled records on."""
        if self.engine.flow.draining:
            return
        now = self._now()
        for event in polled:
            partition = self.engine.partitions[event.place]
            before = partition.polled
            self.step(event, now)
            # Records that aren't due are polled again.
            passed_over = sum(offset < partition.position for offset in event.foreign)
            self._stats.count_polled(event.place[0], partition.polled - before, passed_over)

    def _pass_positions_on(self) -> None:
        """Have commits pass the transaction markers and aborted records behind what was polled."""
        for owner in self.source.assigned.values():
            partition = self.engine.partitions.get(owner.place)
            if partition is not None and owner.position > partition.position:
                self.step(ReadTo(owner.place, owner.position))

    # ---- commits and revocations

    def _send_commit(self, commit: Commit) -> None:
        if self._polling:
            self._commit = commit
        else:
            self.source.commit(commit)

    def _drop_commit(self) -> None:
        """Don't send a commit from before a rebalance: another member may have committed more by now."""
        if self._commit is not None:
            dropped, self._commit = self._commit, None
            self.step(CommitAnswered({}, list(dropped.offsets), dropped))

    async def give_up(self, places: list[TopicPartition]) -> Release:
        """Wait for calls and wait records in flight, release the partitions, and return what to commit last."""
        self._take_inbox()
        self._stats.rebalanced("revoked")
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
