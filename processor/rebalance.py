"""Releases partitions: what is committed, what the next owner gets, and what is still handled here."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from confluent_kafka import KafkaError

from processor.assigned_partition import AssignedPartition
from processor.commits import REBALANCING, Commits
from processor.committable import CommittableOffsets, commit_target
from processor.dispatch import Dispatcher
from processor.ending import Fault
from processor.entry import Entry
from processor.prefetch import Outstanding
from wait_registry.kafka.errors import is_transient, kafka_failure

log = logging.getLogger(__name__)


class Rebalance:
    """Divides a partition's records between this process and the next owner, by the committed offset.

    Unstarted records at or above that offset belong to the next owner, which registers them again under the same IDs.
    All records below it stay here: they were registered here, and no other process will see them. Neither gets a
    tombstone, since a tombstone means an outcome.

    A record that is being renewed stays here in any case. Its second registration may come after the next owner's
    tombstone, and then only a tombstone of this process ends it. The commit may pass such a record, since its first
    registration is acknowledged; if the commit doesn't, the next owner processes the record too.

    Args:
        committable, dispatcher: where unstarted records are.
        outstanding: counts the dropped records no longer.
        commits: knows the commit in flight.
        fault: where a refusal is reported that no rebalance explains.
    """

    def __init__(
        self,
        committable: CommittableOffsets,
        dispatcher: Dispatcher,
        outstanding: Outstanding,
        commits: Commits,
        fault: Fault,
    ) -> None:
        self._committable = committable
        self._dispatcher = dispatcher
        self._outstanding = outstanding
        self._commits = commits
        self._fault = fault

    def revoked(self, owners: list[AssignedPartition]) -> dict[AssignedPartition, int]:
        """Drop the unstarted records from the first one on that no commit has passed, and return what to commit.

        The division holds even if that commit fails: the offset committed before is no higher, so the next owner sees
        every record that is dropped here.
        """
        targets = {owner: commit_target(owner.requested, owner.committable, self._unstarted(owner)) for owner in owners}
        for owner, target in targets.items():
            self._divide(owner, target)
        return {owner: target for owner, target in targets.items() if target > owner.confirmed}

    def committed_last(self, targets: dict[AssignedPartition, int], error: KafkaError | None) -> None:
        """Take the answer of the commit that `revoked` asked for."""
        if error is None:
            for owner, target in targets.items():
                self._commits.confirm(owner, target)
            return
        log.warning("the commit at the end of an assignment failed: %s (%s)", error.str(), error.name())
        if error.code() not in REBALANCING and not is_transient(error):
            self._fault.report(kafka_failure(error, "committing offsets"))

    def lost(self, owners: list[AssignedPartition]) -> None:
        """Drop what no commit can have passed: a requested commit may be done, whatever the answer was."""
        for owner in owners:
            self._divide(owner, owner.requested)

    def _unstarted(self, owner: AssignedPartition) -> Iterable[int]:
        yield from (offset for offset, _ in owner.warm_up.held())
        yield from self._dispatcher.offsets_of(owner)

    def _divide(self, owner: AssignedPartition, offset: int) -> None:
        dropped: list[Entry] = self._committable.entries_of(owner)
        dropped += owner.warm_up.drop_from(offset)
        dropped += self._dispatcher.drop(owner, offset)
        for entry in dropped:
            self._outstanding.drop(entry)
        # A commit has passed the remaining records, so they need no warm-up any more.
        kept = owner.warm_up.end()
        self._dispatcher.add(kept)
        log.info("%r released at offset %d: %d records dropped, %d kept", owner, offset, len(dropped), len(kept))
