"""Mutants of the processor."""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import pytest
from confluent_kafka import OFFSET_STORED, TopicPartition

from tests.mutants.mutant import mutant

Patch = pytest.MonkeyPatch


@mutant("P2.2")
def commits_what_it_has_polled(patch: Patch) -> None:
    """A commit asks for the position instead of the committable offset."""
    from processor.partition import Partition

    patch.setattr(Partition, "committable", property(lambda self: self.position))


@mutant("P2.1")
def commits_past_a_gap(patch: Patch) -> None:
    """A record that is neither registered nor settled counts as registered if a later one is."""
    from tests.simulation.removals import commit_is_contiguous

    commit_is_contiguous(patch)


@mutant("P2.3")
def newer_records_overtake(patch: Patch) -> None:
    """Wait records that wait for want of room are overtaken by what comes when there is room again."""
    from processor.settlement.outbox import Outbox

    original = Outbox.put

    def put(self: Outbox, *record: Any) -> None:
        waiting, self._backlog = self._backlog, deque()
        original(self, *record)
        self._backlog.extendleft(reversed(waiting))

    patch.setattr(Outbox, "put", put)


@mutant("P2.4")
def skips_a_refused_wait_record(patch: Patch) -> None:
    """A record whose wait record the broker refused counts as registered."""
    from processor.registration.wait_records import WaitRecords

    original = WaitRecords._reported
    patch.setattr(WaitRecords, "_reported", lambda self, entry, error, message: original(self, entry, None, message))


@mutant("P1.2")
def commits_an_oversized_record_early(patch: Patch) -> None:
    """The only copy of a record that can't be registered is on its way when its offset is committed."""
    from tests.simulation.removals import unregistrable_waits_for_letter

    unregistrable_waits_for_letter(patch)


@mutant("P1.3")
def writes_the_tombstone_first(patch: Patch) -> None:
    """A tombstone doesn't wait for its dead letter."""
    from tests.simulation.removals import tombstone_waits_for_letter

    tombstone_waits_for_letter(patch)


@mutant("P8.1")
def skips_a_refused_letter(patch: Patch) -> None:
    """A refused dead letter or tombstone is forgotten."""
    from processor.settlement.outbox import Outbox

    patch.setattr(Outbox, "refused", lambda self, receipt, error: self.over())


@mutant("P1.1")
def starts_before_the_first_commit(patch: Patch) -> None:
    """A handler starts before a commit covers its record, so a record that kills the process does so at every start."""
    from processor.registration.policy import RegistrationPolicy

    patch.setattr(RegistrationPolicy, "warm_up", lambda self, assigned, uncommitted_max: (0, 0))


@mutant("P1.4")
def drops_committed_records(patch: Patch) -> None:
    """A partition that moves takes records with it that only this process will see."""
    from tests.simulation.removals import committed_is_kept

    committed_is_kept(patch)


@mutant("P1.6")
def writes_tombstones_at_a_rebalance(patch: Patch) -> None:
    """Records that the next owner handles get a tombstone from this one."""
    from tests.simulation.removals import no_tombstone_on_revoke

    no_tombstone_on_revoke(patch)


@mutant("P1.5")
def takes_a_refused_commit_for_undone(patch: Patch) -> None:
    """A commit that was refused counts as not done, although an earlier repetition of it may have been."""
    from processor.engine import Engine

    original = Engine._commit_answered

    def answered(self: Engine, event: Any, now: Any) -> None:
        original(self, event, now)
        for place in self.partitions.keys() & event.failed:
            self.partitions[place].requested = self.partitions[place].confirmed

    patch.setattr(Engine, "_commit_answered", answered)


@mutant("P3.14")
def writes_tombstones_to_another_partition(patch: Patch) -> None:
    """A tombstone goes to partition 0, where it settles nothing."""
    from processor.settlement.outcomes import Outcomes

    original = Outcomes.write_tombstones

    def write(self: Outcomes, entries: Any) -> None:
        for entry in entries:
            entry.record.wait_partition = 0
        original(self, entries)

    patch.setattr(Outcomes, "write_tombstones", write)


@mutant("P3.16")
def starts_without_time_left(patch: Patch) -> None:
    """A handler starts although its registration expires while it works."""
    from tests.simulation.removals import overdue_is_renewed

    overdue_is_renewed(patch)


@mutant("P7.2")
def runs_one_handler_too_many(patch: Patch) -> None:
    """One handler more than max_in_flight runs."""
    from processor.dispatch.concurrency import FixedLimit
    from processor.engine import Engine

    original = Engine.__init__

    def begin(self: Engine, rules: Any, scheduler: Any, limit: Any, *others: Any) -> None:
        original(self, rules, scheduler, FixedLimit(limit.current + 1), *others)

    patch.setattr(Engine, "__init__", begin)


@mutant("P7.19")
def gives_a_full_route_more_slots(patch: Patch) -> None:
    """A route with a bulkhead takes any free slot."""
    from processor.dispatch.bulkheads import Bulkheads

    patch.setattr(Bulkheads, "limited", lambda self, entry: None)


@mutant("P7.3")
def gives_a_blocked_slot_away(patch: Patch) -> None:
    """A plain function that exceeds its limit runs in addition to max_in_flight others."""
    from processor.handlers.python import _Call

    original = _Call.abandon

    def abandon(self: Any) -> None:
        original(self)
        self._slots.blocked -= 1
        self._slots.give()

    patch.setattr(_Call, "abandon", abandon)


@mutant("P1.8")
def takes_any_wait_topic(patch: Patch) -> None:
    """Offsets that rely on another wait topic are taken for those of this one."""
    from processor.intake.start_offsets import StartOffsets

    patch.setattr(StartOffsets, "_check", lambda self, recorded: None)


@mutant("P8.6")
def misses_a_recreated_input_topic(patch: Patch) -> None:
    """A running processor reads a recreated input topic at a position of the old one."""
    from processor.intake.consumed_topics import ConsumedTopics

    patch.setattr(ConsumedTopics, "require_unchanged", lambda self, admin: None)


@mutant("P8.2")
def resets_a_position_silently(patch: Patch) -> None:
    """Records between a position that retention deleted and the end of the log are skipped without a word."""
    from processor.intake import group_consumer
    from processor.intake.group_config import group_config

    latest = {"auto.offset.reset": "latest"}
    patch.setattr(group_consumer, "group_config", lambda settings: {**group_config(settings), **latest})


@mutant("P8.24")
def ends_at_an_outage(patch: Patch) -> None:
    """A broker that can't be reached ends the process."""
    from processor.intake import broker_connection

    patch.setattr(broker_connection, "is_access_problem", lambda error: True)


@mutant("P8.5")
def ends_at_a_moving_coordinator(patch: Patch) -> None:
    """A coordinator that moves ends a process that asks for its start offsets."""
    from processor.intake import start_offsets

    patch.setattr(start_offsets, "is_transient", lambda error: False)


@mutant("P1.9")
def starts_anywhere_if_the_start_is_late(patch: Patch) -> None:
    """The client looks up the position of a partition whose start offset is late."""
    from processor.intake.start_offsets import Start, StartOffsets

    class Anywhere(Start):
        def for_client(self) -> TopicPartition:
            return TopicPartition(self.topic, self.partition, OFFSET_STORED)

    original = StartOffsets.at_once

    def at_once(self: StartOffsets, consumer: Any, partitions: list[TopicPartition]) -> list[Start]:
        starts = original(self, consumer, partitions)
        return starts or [Anywhere(p.topic, p.partition, None, None, None) for p in partitions]

    patch.setattr(StartOffsets, "at_once", at_once)


@mutant("P7.18")
def cancels_blocked_calls_in_an_outage(patch: Patch) -> None:
    """The calls of an outage are cancelled one after the other, and their records go to the topics for failures."""
    from processor.dispatch.blocked_calls import Tokens

    patch.setattr(Tokens, "take", lambda self, now_s: True)


@mutant("P8.4")
def misses_that_all_brokers_are_forgotten(patch: Patch) -> None:
    """A Kafka client that has forgotten all brokers is never replaced."""
    from processor.intake import broker_connection

    patch.setattr(broker_connection, "FORGOTTEN_AFTER_S", math.inf)


@mutant("P8.17")
def flushes_twice_in_vain(patch: Patch) -> None:
    """A stop waits a second time for what it has waited for in vain."""
    from processor.shell import Shell

    patch.setattr(Shell, "limit_finish", lambda self, limit_s: None)


@mutant("P8.20")
def commits_during_a_poll(patch: Patch) -> None:
    """A commit waits for a poll, and the rebalance in that poll for the commit."""
    from processor.intake.group_consumer import GroupConsumer

    patch.setattr(GroupConsumer, "polling", property(lambda self: False, lambda self, now: None), raising=False)


@mutant("P8.21")
def never_joins_again(patch: Patch) -> None:
    """A member that missed an assignment continues as it is, and its partitions are stalled."""
    from processor.intake.membership import Membership

    original = Membership.begin
    patch.setattr(
        Membership, "begin", lambda self, member, places, rejoin: original(self, member, places, lambda: None)
    )


@mutant("P8.22")
def ends_once_without_partitions(patch: Patch) -> None:
    """`--once` ends in a process that has no partitions, although others are not read."""
    from processor.service.once import Once, reached

    patch.setattr(Once, "reached", lambda self, assigned: reached(self._ends, assigned.values()))


@mutant("P8.8")
def takes_a_url_without_a_host(patch: Patch) -> None:
    """A handler's URL that can't be called dead-letters every record."""
    from processor.handlers import url_template

    patch.setattr(url_template, "require_callable", lambda url: url)


@mutant("P4.18")
def ends_once_with_records_in_flight(patch: Patch) -> None:
    """`--once` ends with registered records, and those that take too long expire in a topic that the group has left."""
    from processor.open_records import OpenRecords
    from processor.pipeline import Pipeline

    original = Pipeline._worked_off

    def worked_off(self: Pipeline) -> bool:
        with pytest.MonkeyPatch.context() as nothing:
            nothing.setattr(OpenRecords, "__len__", lambda self: 0)
            return original(self)

    patch.setattr(Pipeline, "_worked_off", worked_off)


@mutant("D1.1")
def handles_retries_at_once(patch: Patch) -> None:
    """A record of a retry topic is handled when it is polled."""
    from tests.simulation.removals import delay_is_awaited

    delay_is_awaited(patch)


@mutant("P1.23")
def settles_before_the_retry_record(patch: Patch) -> None:
    """A retry record counts as acknowledged when it is sent."""
    from processor.settlement.retry_records import RetryRecords

    original = RetryRecords.send

    def send(self: RetryRecords, taken: Any, retry: Any, acknowledged: Any, refused: Any) -> None:
        original(self, taken, retry, lambda: None, refused)
        acknowledged()

    patch.setattr(RetryRecords, "send", send)


@mutant("P1.27")
def writes_no_idempotency_key(patch: Patch) -> None:
    """The wait ID of each delivery counts as the key of what is written of it."""
    from wait_registry.records.lineage import Lineage

    original = Lineage.of
    patch.setattr(Lineage, "of", lambda *given, **named: original(*given, **{**named, "idempotency_key": None}))


@mutant("P1.24")
def consumes_no_retry_topic(patch: Patch) -> None:
    """Retry topics are written and not consumed."""
    from processor.intake import subscription

    patch.setattr(subscription, "retry_delay_s", lambda name, topic, group: None)


@mutant("P7.17")
def keeps_what_is_committed(patch: Patch) -> None:
    """Retry topics are never emptied."""
    from processor.settlement.emptied_topics import EmptiedTopics

    patch.setattr(EmptiedTopics, "_delete", lambda self, until: None)


@mutant("P1.28")
def decodes_to_anything(patch: Patch) -> None:
    """A value that can't be decoded reaches the handler as it is."""
    from processor.handlers.decoding import Decoder
    from wait_registry.errors import MalformedError

    original = Decoder.decode

    def decode(self: Decoder, record: Any) -> Any:
        try:
            return original(self, record)
        except MalformedError:
            return record.value

    patch.setattr(Decoder, "decode", decode)


@mutant("P1.29")
def blames_the_record_for_the_registry(patch: Patch) -> None:
    """A record is malformed while the schema registry can't be asked."""
    from wait_registry import schema_registry
    from wait_registry.errors import MalformedError

    patch.setattr(schema_registry, "TransientError", MalformedError)


@mutant("P1.33")
def commits_for_the_group_in_a_replay(patch: Patch) -> None:
    """A replay moves the offsets of the running group."""
    from confluent_kafka import TopicPartition

    from processor.replay.range_consumer import RangeConsumer

    original = RangeConsumer._settle

    def settle(self: RangeConsumer, commit: Any) -> None:
        original(self, commit)
        if offsets := [TopicPartition(*place, offset) for place, offset in commit.offsets.items()]:
            self._consumer.commit(offsets=offsets, asynchronous=False)

    patch.setattr(RangeConsumer, "_settle", settle)


@mutant("P1.34")
def takes_what_was_read_for_settled(patch: Patch) -> None:
    """A stopped replay doesn't name the records in flight, and no other process handles them."""
    from processor.replay.progress import Progress

    def left(self: Progress) -> dict[Any, range]:
        return {place: range(self._polled[place], offsets.stop) for place, offsets in self.ranges.items()}

    patch.setattr(Progress, "left", left)


@mutant("O1.1")
def starts_before_earlier_records(patch: Patch) -> None:
    """A record starts whatever is before it in its lane."""
    from tests.simulation.ordering_removals import earlier_is_awaited

    earlier_is_awaited(patch)


@mutant("O1.3")
def gives_partitions_up_in_mid_call(patch: Patch) -> None:
    """A revoked partition is given up while its calls run, and they aren't cancelled."""
    from processor.dispatch.worker_pool import WorkerPool
    from processor.shell import Shell

    async def finish(self: Any, places: Any) -> None:
        return None

    patch.setattr(Shell, "_finish", finish)
    patch.setattr(WorkerPool, "cancel", lambda self, entries: None)
