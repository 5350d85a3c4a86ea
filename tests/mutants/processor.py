"""Mutants of the processor."""

from __future__ import annotations

import math
from typing import Any

import pytest
from confluent_kafka import OFFSET_STORED, TopicPartition

from tests.mutants.mutant import mutant
from wait_registry.records.dead_letter import Reason

Patch = pytest.MonkeyPatch


@mutant("P2.2")
def commits_what_it_has_polled(patch: Patch) -> None:
    """A commit asks for the position instead of the committable offset."""
    from processor.commits import Commits

    original = Commits.commit

    def commit(self: Commits, owners: Any) -> None:
        owners = list(owners)
        for owner in owners:
            owner.committable = owner.position
        original(self, owners)

    patch.setattr(Commits, "commit", commit)


@mutant("P2.1")
def commits_past_a_gap(patch: Patch) -> None:
    """A batch that isn't acknowledged counts as acknowledged."""
    from processor.committable import CommittableOffsets, RegistrationBatch

    original = CommittableOffsets.append

    def append(self: CommittableOffsets, batch: RegistrationBatch) -> None:
        batch.pending = 0
        original(self, batch)

    patch.setattr(CommittableOffsets, "append", append)


@mutant("P2.3")
def newer_records_overtake(patch: Patch) -> None:
    """Records that are buffered for want of room are overtaken by what comes when there is room again."""
    from processor.poll_loop import PollLoop

    class Unseen(list[Any]):
        def __bool__(self) -> bool:
            return False

    def buffer(self: Any, count: int) -> None:
        taken = self._group_consumer.take(count)
        self.buffered = Unseen([*self.buffered, *taken])

    patch.setattr(PollLoop, "_buffer", buffer)


@mutant("P2.4")
def skips_a_refused_wait_record(patch: Patch) -> None:
    """A record whose wait record the broker refused counts as registered."""
    from processor.registration import Registration

    patch.setattr(Registration, "refused", lambda self, entry, error: entry.batch.acknowledge())


def _acknowledges_letters_at_once(patch: Patch, of: Reason) -> None:
    from processor.dead_letters import DeadLetters

    original = DeadLetters.send

    def send(
        self: DeadLetters, delivery: Any, reason: Reason, error: Any, acknowledged: Any, ours: bool = False
    ) -> None:
        if reason is not of:
            return original(self, delivery, reason, error, acknowledged, ours)
        acknowledged()
        return original(self, delivery, reason, error, lambda: None, ours)

    patch.setattr(DeadLetters, "send", send)


@mutant("P1.2")
def commits_an_oversized_record_early(patch: Patch) -> None:
    """The only copy of a record that can't be registered is on its way when its offset is committed."""
    _acknowledges_letters_at_once(patch, Reason.UNREGISTRABLE)


@mutant("P1.3")
def writes_the_tombstone_first(patch: Patch) -> None:
    """A tombstone doesn't wait for its dead letter."""
    _acknowledges_letters_at_once(patch, Reason.FAILED)


@mutant("P8.1")
def skips_a_refused_letter(patch: Patch) -> None:
    """A refused dead letter or tombstone is forgotten."""
    from processor.outbox import Outbox

    patch.setattr(Outbox, "refused", lambda self, receipt, error: self.over())


@mutant("P1.1")
def starts_before_the_first_commit(patch: Patch) -> None:
    """A handler starts before a commit covers its record, so a record that kills the process does so at every start."""
    from processor.warm_up import WarmUp

    original = WarmUp.__init__

    def begin(self: WarmUp[Any], size: int) -> None:
        original(self, size)
        self.is_over = True

    patch.setattr(WarmUp, "__init__", begin)


@mutant("P1.4")
def drops_committed_records(patch: Patch) -> None:
    """A partition that moves takes records with it that only this process will see."""
    from processor.dispatch import Dispatcher

    original = Dispatcher.drop
    patch.setattr(Dispatcher, "drop", lambda self, owner, offset: original(self, owner, 0))


@mutant("P1.6")
def writes_tombstones_at_a_rebalance(patch: Patch) -> None:
    """Records that the next owner handles get a tombstone from this one."""
    from processor.dispatch import Dispatcher

    original = Dispatcher.drop

    def drop(self: Any, owner: Any, offset: int) -> list[Any]:
        dropped: list[Any] = original(self, owner, offset)
        for entry in dropped:
            self._settle(entry, None, 0.0)
        return dropped

    patch.setattr(Dispatcher, "drop", drop)


@mutant("P1.5")
def takes_a_refused_commit_for_undone(patch: Patch) -> None:
    """A commit that was refused counts as not done, although an earlier repetition of it may have been."""
    from processor.commits import Commits

    original = Commits.answered

    def answered(self: Any, error: Any, partitions: list[TopicPartition]) -> None:
        owners = list(self._in_flight)
        original(self, error, partitions)
        if error is not None or any(answer.error is not None for answer in partitions):
            for owner in owners:
                owner.requested = owner.confirmed

    patch.setattr(Commits, "answered", answered)


@mutant("P3.14")
def writes_tombstones_to_another_partition(patch: Patch) -> None:
    """A tombstone goes to partition 0, where it settles nothing."""
    from processor.settlement import Settlement

    original = Settlement._tombstone

    def tombstone(self: Settlement, entry: Any, *outcome: Any) -> None:
        entry.wait_partition = 0
        original(self, entry, *outcome)

    patch.setattr(Settlement, "_tombstone", tombstone)


@mutant("P3.16")
def starts_without_time_left(patch: Patch) -> None:
    """A handler starts although its registration expires while it works."""
    from processor.dispatch import Dispatcher

    def first(self: Any) -> Any:
        entry = (self._renewed or self._ready).popleft()
        self._wake()
        return entry

    patch.setattr(Dispatcher, "_first", first)


@mutant("P7.2")
def runs_one_handler_too_many(patch: Patch) -> None:
    """One handler more than max_in_flight runs."""
    from processor.dispatch import Dispatcher

    original = Dispatcher.__init__

    def begin(self: Dispatcher, max_in_flight: int, *others: Any, **named: Any) -> None:
        original(self, max_in_flight + 1, *others, **named)

    patch.setattr(Dispatcher, "__init__", begin)


@mutant("P7.3")
def gives_a_blocked_slot_away(patch: Patch) -> None:
    """A plain function that exceeds its limit runs in addition to max_in_flight others."""
    from processor.handlers.python import _Call

    original = _Call.abandon

    def abandon(self: Any) -> None:
        original(self)
        self._slots.give()

    patch.setattr(_Call, "abandon", abandon)


@mutant("P1.8")
def takes_any_wait_topic(patch: Patch) -> None:
    """Offsets that rely on another wait topic are taken for those of this one."""
    from processor.start_offsets import StartOffsets

    patch.setattr(StartOffsets, "_check", lambda self, recorded: None)


@mutant("P8.6")
def misses_a_recreated_input_topic(patch: Patch) -> None:
    """A running processor reads a recreated input topic at a position of the old one."""
    from processor.consumed_topics import ConsumedTopics

    patch.setattr(ConsumedTopics, "require_unchanged", lambda self, admin: None)


@mutant("P8.2")
def resets_a_position_silently(patch: Patch) -> None:
    """Records between a position that retention deleted and the end of the log are skipped without a word."""
    from processor import group_consumer
    from processor.group_config import group_config

    latest = {"auto.offset.reset": "latest"}
    patch.setattr(group_consumer, "group_config", lambda settings: {**group_config(settings), **latest})


@mutant("P8.24")
def ends_at_an_outage(patch: Patch) -> None:
    """A broker that can't be reached ends the process."""
    from processor import broker_connection

    patch.setattr(broker_connection, "is_access_problem", lambda error: True)


@mutant("P8.5")
def ends_at_a_moving_coordinator(patch: Patch) -> None:
    """A coordinator that moves ends a process that asks for its start offsets."""
    from processor import start_offsets

    patch.setattr(start_offsets, "is_transient", lambda error: False)


@mutant("P1.9")
def starts_anywhere_if_the_start_is_late(patch: Patch) -> None:
    """The client looks up the position of a partition whose start offset is late."""
    from processor.start_offsets import StartOffsets

    original = StartOffsets.at_once

    def at_once(self: StartOffsets, consumer: Any, partitions: list[TopicPartition]) -> list[TopicPartition]:
        starts = original(self, consumer, partitions)
        return starts or [TopicPartition(p.topic, p.partition, OFFSET_STORED) for p in partitions]

    patch.setattr(StartOffsets, "at_once", at_once)


@mutant("P8.4")
def misses_that_all_brokers_are_forgotten(patch: Patch) -> None:
    """A Kafka client that has forgotten all brokers is never replaced."""
    from processor import broker_connection

    patch.setattr(broker_connection, "FORGOTTEN_AFTER_S", math.inf)


@mutant("P8.17")
def flushes_twice_in_vain(patch: Patch) -> None:
    """A stop waits a second time for what it has waited for in vain."""
    from processor.poll_loop import PollLoop

    patch.setattr(PollLoop, "limit_flush", lambda self, limit_s: None)


@mutant("P8.20")
def commits_during_a_poll(patch: Patch) -> None:
    """A commit waits for a poll, and the rebalance in that poll for the commit."""
    from processor.poll_loop import PollLoop

    patch.setattr(PollLoop, "_commit_warm_up", lambda self: self.commits.commit(self._group_consumer.assigned.values()))


@mutant("P8.21")
def never_joins_again(patch: Patch) -> None:
    """A member that missed an assignment continues as it is, and its partitions are stalled."""
    from processor.membership import Membership

    original = Membership.begin
    patch.setattr(
        Membership, "begin", lambda self, member, places, rejoin: original(self, member, places, lambda: None)
    )


@mutant("P8.22")
def ends_once_without_partitions(patch: Patch) -> None:
    """`--once` ends in a process that has no partitions, although others are not read."""
    from processor.once import Once, reached

    patch.setattr(Once, "reached", lambda self, assigned: reached(self._ends, assigned.values()))


@mutant("P8.8")
def takes_a_url_without_a_host(patch: Patch) -> None:
    """A handler's URL that can't be called dead-letters every record."""
    from processor.handlers import http

    patch.setattr(http, "require_callable", lambda url: url)


@mutant("P4.18")
def ends_once_with_records_in_flight(patch: Patch) -> None:
    """`--once` gives registered records back, which then expire in a wait topic that the group has left."""
    from processor.pipeline import Pipeline
    from processor.prefetch import Outstanding

    original = Pipeline._worked_off

    def worked_off(self: Any) -> bool:
        with pytest.MonkeyPatch.context() as nothing:
            nothing.setattr(self, "outstanding", Outstanding())
            return original(self)

    patch.setattr(Pipeline, "_worked_off", worked_off)
