"""Safeguards of what is around the engine: intake, wait records, outcomes, handlers, replay, the end of a process."""

from __future__ import annotations

import math
import re
from collections import deque
from dataclasses import replace
from pkgutil import resolve_name

import pytest

from tests.safeguards.catalogue import Patch, safeguard


@safeguard("P2.3", at="processor.writing.outbox.Outbox.put")
def without_order_of_registrations(original, self, *record):
    """Wait records that wait for want of room are overtaken by what comes when there is room again."""
    waiting, self._backlog = self._backlog, deque()
    original(self, *record)
    self._backlog.extendleft(reversed(waiting))


@safeguard("P2.4", at="processor.writing.wait_records.WaitRecords._reported")
def without_refusals_of_wait_records(original, self, entry, error, message):
    """A record whose wait record the broker refused counts as registered."""
    original(self, entry, None, message)


@safeguard("P1.44", at="processor.writing.outbox.Outbox.put_alone")
def without_batches_of_refused_records(original, self, error, refused, report, headers):
    """A record of a batch that a topic refuses for its size counts as too large."""
    report(error, None)


@safeguard("P8.1", at="processor.writing.outbox.Outbox.refused")
def without_refusals_of_dead_letters(_, self, receipt, error):
    """A refused dead letter or tombstone is forgotten."""
    self.over()


@safeguard("P3.14", at="processor.writing.outcomes.Outcomes.write_tombstones", real=True, world=lambda w: w.sweeps())
def without_partitions_of_registrations(original, self, entries):
    """A tombstone goes to another partition than its wait record, where it settles nothing."""
    for entry in entries:
        entry.record.wait_partition = 1 - min(entry.record.wait_partition, 1)
    original(self, entries)


@safeguard("P3.15", at="wait_registry.records.wait_partition.wait_partitions", real=True, world=lambda w: w.sweeps())
def without_one_partition_per_wait_id(original, wait_ids, partitions):
    """The partition of a wait ID changes with the number of partitions that the wait topic has."""
    return original(wait_ids, partitions + 2)


@safeguard("P1.23", at="processor.writing.failed_records.FailedRecords.send_retry")
def without_acknowledged_retry_records(original, self, record, retry, acknowledged, refused):
    """A retry record counts as acknowledged when it is sent."""
    original(self, record, retry, lambda: None, refused)
    acknowledged()


@safeguard("P1.27", at="wait_registry.records.lineage.Lineage.of")
def without_idempotency_key(original, *given, **named):
    """The wait ID of each delivery counts as the key of what is written of it."""
    return original(*given, **{**named, "idempotency_key": None})


@safeguard("P1.27", at="processor.intake.delivery.idempotency_key")
def without_keys_of_edited_records(original, cluster_id, group, record, named):
    """An edited record has the key of the record before it, and so its stored answer."""
    return original(cluster_id, group, record, None)


@safeguard("P7.17", at="processor.writing.emptied_topics.EmptiedTopics._delete")
def without_emptied_topics(*_):
    """Retry topics keep what was committed."""
    return {}


@safeguard("P1.40", at="processor.intake.start_decision.own_start", seeds=True)
def without_records_that_are_kept(original, start, first):
    """Where another program committed an offset in a retry topic, the records before it are deleted."""
    found, warning = original(start, first)
    return found._replace(commits=replace(found.commits, kept_below=None)), warning


@safeguard("P1.40", at="wait_registry.kafka.commit_metadata.decode_metadata", real=True, seeds=True)
def without_offsets_in_metadata(original, text, offset):
    """An offset that another program moved counts as the group's if that program kept the metadata."""
    return original(re.sub(r";offset=\d+", f";offset={offset}", text or ""), offset)


@safeguard("P1.41", at="processor.intake.start_decision.own_start")
def without_beginnings_of_own_topics(original, start, first):
    """A retry topic that was emptied or recreated is read from the group's old offset."""
    found, warning = original(start, first)
    return found._replace(offset=start.offset), warning


@safeguard("P1.43", at="processor.intake.start_decision.require_same_identities")
def without_refusal_of_lost_identities(*_):
    """Records that were sent to the input topic get new idempotency keys when `redeliver_to` goes back to `group`."""


@safeguard("P1.42", at="waitreg.redrive.target.Route.obstacle")
def without_proof_of_identity(original, self, candidate):
    """A record is redriven to the input topic of a group that takes it for a new one."""
    found = original(self, candidate)
    return None if found == "identity_lost" else found


@safeguard("P1.8", at="processor.intake.start_offsets.StartOffsets._check")
def without_identity_of_wait_topics(*_):
    """Offsets that rely on another wait topic are taken for those of this one."""


@safeguard("P8.6", at="processor.intake.consumed_topics.ConsumedTopics.recreated")
def without_identity_of_input_topics(*_):
    """A running processor reads a recreated input topic at a position of the old one."""


@safeguard("P8.2", at="processor.intake.group_config.group_config")
def without_refusal_of_deleted_positions(original, settings):
    """Records between a position that retention deleted and the end of the log are skipped without a word."""
    return {**original(settings), "auto.offset.reset": "latest"}


@safeguard("P8.24")
def without_waiting_for_brokers(patch: Patch) -> None:
    """A broker that can't be reached ends the process."""
    patch.replace("processor.health.broker_connection.is_access_problem", lambda error: True)


@safeguard("P8.5")
def without_waiting_for_coordinators(patch: Patch) -> None:
    """A coordinator that moves ends a process that asks for its start offsets."""
    patch.replace("processor.intake.start_offsets.is_transient", lambda error: False)


@safeguard("P1.9", at="processor.intake.start_offsets.StartOffsets.at_once")
def without_late_starts(original, self, consumer, partitions):
    """The client looks up the position of a partition whose start offset is late."""
    from confluent_kafka import OFFSET_STORED, TopicPartition

    class Anywhere(resolve_name("processor.intake.start_offsets.Start")):
        def for_client(self):
            return TopicPartition(self.topic, self.partition, OFFSET_STORED)

    starts = original(self, consumer, partitions)
    return starts or [Anywhere(p.topic, p.partition, None, None, None) for p in partitions]


@safeguard("P8.4")
def without_replacement_of_clients(patch: Patch) -> None:
    """A Kafka client that has forgotten all brokers is never replaced."""
    patch.replace("processor.health.broker_connection.FORGOTTEN_AFTER_S", math.inf)


@safeguard("P8.20")
def without_commits_between_polls(patch: Patch) -> None:
    """A commit waits for a poll, and the rebalance in that poll for the commit."""
    patch.replace("processor.loop.Loop._send_commit", lambda self, commit: self.source.commit(commit))


@safeguard("P8.21", at="processor.intake.membership.Membership.must_join_again")
def without_joining_again(original, self):
    """A member that missed an assignment continues as it is, and its partitions are stalled."""
    return False


@safeguard("P1.24", at="processor.intake.subscription.retry_delay_s")
def without_consumed_retry_topics(*_):
    """Retry topics are written and not consumed."""


@safeguard("R1.10", at="processor.intake.absent_topics.AbsentTopics.run_once")
async def without_later_redelivery_topics(*_):
    """A processor reads the redelivery topics that were there at its start, and no others."""


@safeguard("P8.8")
def without_refusal_of_urls_without_host(patch: Patch) -> None:
    """A handler's URL that can't be called dead-letters every record."""
    patch.replace("processor.handlers.url_template.require_callable", lambda url: url)


@safeguard("P1.28", at="processor.handlers.decoding.Decoder.decode")
def without_malformed_records(original, self, record):
    """A value that can't be decoded reaches the handler as it is."""
    try:
        return original(self, record)
    except resolve_name("wait_registry.errors.MalformedError"):
        return record.value


@safeguard("P1.29")
def without_waiting_for_schema_registries(patch: Patch) -> None:
    """A record is malformed while the schema registry can't be asked."""
    patch.replace("wait_registry.schemas.registry.TransientError", resolve_name("wait_registry.errors.MalformedError"))


@safeguard("P1.33", at="processor.intake.replay_consumer.ReplayConsumer._settle")
def without_offsets_left_alone_by_replays(original, self, commit):
    """A replay moves the offsets of the running group."""
    from confluent_kafka import TopicPartition

    original(self, commit)
    if offsets := [TopicPartition(*place, offset) for place, offset in commit.offsets.items()]:
        self._consumer.commit(offsets=offsets, asynchronous=False)


@safeguard("P1.34", at="processor.intake.replay_progress.ReplayProgress.left")
def without_names_of_unsettled_records(_, self):
    """A stopped replay doesn't name the records in flight, and no other process handles them."""
    return {place: range(self._polled[place], offsets.stop) for place, offsets in self.ranges.items()}


@safeguard("P8.17", at="processor.loop.Loop.limit_finish")
def without_limit_of_a_stop(*_):
    """A stop waits a second time for what it has waited for in vain."""


@safeguard("P8.22", at="processor.intake.stop_at_ends.StopAtEnds.reached")
def without_other_members_at_once(_, self, assigned):
    """`--once` ends in a process that has no partitions, although others are not read."""
    return resolve_name("processor.intake.stop_at_ends.reached")(self.ends, assigned.values())


@safeguard("P4.18", at="processor.run.Run._is_done")
def without_settled_records_at_once(original, self):
    """`--once` ends with registered records, and those that take too long expire in a topic that the group has left."""
    with pytest.MonkeyPatch.context() as nothing:
        nothing.setattr("processor.protocol.open_records.OpenRecords.__len__", lambda self: 0)
        return original(self)
