"""How partitions come and go, and which records stay with this process then."""

from __future__ import annotations

from collections.abc import Mapping

from processor.protocol.commits import Commits
from processor.protocol.effects import Cancel, Effect, FlowControl, Rewind
from processor.protocol.events import Assigned, Draining, Instant, Lost, Revoked, Revoking
from processor.protocol.open_records import OpenRecords
from processor.protocol.partition import UNKNOWN, DueTimes, Partition
from processor.protocol.record import KEPT, RUNNING, UNSTARTED, Entry, Step
from processor.protocol.registering import Registering, Rules


class Rebalances:
    """Takes partitions over, and divides their records between this process and the next owner at the end."""

    def __init__(
        self,
        rules: Rules,
        records: OpenRecords,
        commits: Commits,
        registering: Registering,
        flow: FlowControl,
        effects: list[Effect],
    ) -> None:
        self._rules = rules
        self._records = records
        self._commits = commits
        self._registering = registering
        self._flow = flow
        self._effects = effects

    def assigned(self, event: Assigned, now: Instant) -> None:
        """Take a partition over; its first records belong to the warm-up."""
        if again := self._records.at([event.place]):
            # Seen with eager protocols: assigned again without a revocation.
            self._give_up(again, {})
        rules = self._rules
        due_times = DueTimes(event.delay_s, event.retries) if event.delay_s else None
        if due_times is not None and event.end is not None:
            due_times.seen(event.end, now.wall_ms)
        announced = rules.is_announced(event)
        assigned = (event.place, event.start, rules.warm_up(event), rules.recorded(event))
        partition = Partition(*assigned, due_times, announced)
        self._records.assign(partition)
        if not announced and event.start is not None:
            self._commits.announce(partition)
        self._effects += self._flow.assigned(partition)

    def announce(self, partition: Partition, first: int) -> None:
        """Commit where a log begins, before anything of it is taken; poll its records again then."""
        if partition.position == UNKNOWN:
            partition.begin(first)
        self._commits.announce(partition)
        self._effects += self._flow.fetch([partition])
        self._effects.append(Rewind(partition.place, first))

    def revoking(self, event: Revoking, now: Instant) -> None:
        """Start nothing more of partitions that the group takes away."""
        self._flow.slots.hold(self._records.at(event.places))

    def revoked(self, event: Revoked, now: Instant) -> None:
        """Give partitions up with a last commit, which stops before the first record that hasn't started."""
        first: dict[Partition, int] = {}
        for entry in self._records:
            partition = entry.partition
            if entry.state in UNSTARTED and entry.offset >= partition.requested:
                first[partition] = min(entry.offset, first.get(partition, entry.offset))
        partitions = self._records.at(event.places)
        targets = {partition: partition.last_commit(first.get(partition)) for partition in partitions}
        release = self._commits.release(targets, now.s)
        self._give_up(partitions, targets)
        self._effects.append(release)

    def lost(self, event: Lost, now: Instant) -> None:
        """Give partitions up without a last commit."""
        self._give_up(self._records.at(event.places), {})

    def _give_up(self, partitions: list[Partition], targets: Mapping[Partition, int]) -> None:
        """Divide the records of partitions between this process and the next owner.

        The offsets of the last commits divide them, else what was requested, which may be committed. The division holds
        even if a last commit fails: the offset committed before is no higher, so the next owner polls every record that
        is dropped here.
        """
        dropped: list[Entry] = []
        cancelled: dict[Entry, None] = {}
        for entry in [entry for entry in self._records if entry.partition in partitions]:
            if entry.offset < targets.get(entry.partition, entry.partition.requested):
                continue
            running = entry.state in RUNNING
            # In off, the next owner handles a registered one, too.
            abandons = entry.state in KEPT and not self._rules.passes_registered
            if entry.take(Step.ABANDON if abandons else Step.DROP):
                dropped.append(entry)
                if running:
                    cancelled[entry] = None
        refused = [entry for entry in self._records.refused if entry.partition in partitions]
        Entry.take_all(refused, Step.ABANDON)
        for entry in refused:
            self._records.refused.remove(entry)
        dropped += refused
        self._records.close(dropped)
        for partition in partitions:
            self._records.give_up(partition)
            self._commits.forget(partition)
        # Those whose calls run leave when these end.
        self._flow.give_up(partitions, [entry for entry in dropped if entry not in cancelled])
        for partition in partitions:
            self._registering.release_held(partition)
            self._registering.leave_held(partition)
        if cancelled:
            self._effects.append(Cancel(list(cancelled)))

    def drain(self, event: Draining, now: Instant) -> None:
        """Fetch nothing more."""
        self._effects += self._flow.drain()
