"""Giving partitions up: what is committed, what the next owner gets, and what is still handled here."""

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

    Unstarted records at or above it are the next owner's, which registers them again under the same ids. Below it, all
    are ours: they were registered here and nobody else will see them. No tombstone is written for either: a tombstone
    means an outcome.

    A record whose second registration is on its way stays ours wherever it is: that may land after the next owner's
    tombstone, and only a tombstone of ours ends it then. The commit may pass it, since its first registration stands;
    if it doesn't, the next owner works on it too.

    Args:
        frontier, dispatcher: where unstarted records are.
        outstanding: dropped records leave it.
        commits: knows what is in flight.
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

        Whether that commit succeeds changes nothing about the division: what was committed before is no higher, so
        the next owner sees all that is dropped here.
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
        """Drop what no commit can have passed: one that was asked for may have been done, whatever was answered."""
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
        # What is left was passed by a commit: no gate is needed any more.
        kept = owner.warm_up.open()
        self._dispatcher.add(kept)
        log.info("%r given up at offset %d: %d records dropped, %d kept", owner, offset, len(dropped), len(kept))
