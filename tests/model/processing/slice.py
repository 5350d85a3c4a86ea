"""The processors' slice: two instances of a group, one input partition, the wait topic, the dead letter topic.

Abstracted: of the log only what decides is kept, for each record and wait id whether its last entry is a wait. Records
may land in any order (their wait ids lie in different partitions), those of one id in the order of their producer.
Landing and the delivery report are one step: a report that comes late, or never, is a process that isn't scheduled, or
dies. What a process had sent when it died may still land, any time later (dead letters apart: no step acts on one, so
it is the same as one that is lost). A handler may end well or badly; it may run indefinitely on an instance that isn't
scheduled.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.model.explorer import Step
from tests.model.processing.group import group_steps
from tests.model.processing.instance import instance_steps
from tests.model.processing.lingering import lingering_steps
from tests.model.processing.producer import producer_steps
from tests.model.processing.state import (
    DONE,
    KILLS,
    LETTER,
    REGISTERED,
    STANDING,
    UNTOUCHED,
    WITHOUT,
    Instance,
    State,
)


@dataclass(frozen=True, slots=True)
class Processing:
    """The slice; the switches are the design.

    Args:
        name: of the slice, with its bounds.
        records: in the input partition.
        losses: partitions taken from an instance that doesn't know it yet, at most.
        revocations: orderly ones, at most.
        renewals: times that a waiting record's time runs short, at most.
        crashes: at most; negative: without a bound.
        lingering: processes of which what they had sent may land after their death, at most; negative: all of them.
            Needs wait ids that are computed.
        flush_fails: whether the flush of a revocation may end before all wait records are acknowledged.
        deadly: records that kill their process when their handler starts.
        oversized: records that the wait topic refuses.
        failing: whether handlers may fail.
    """

    name: str = "processors"
    records: int = 2
    losses: int = 0
    revocations: int = 1
    renewals: int = 0
    flush_fails: bool = False
    crashes: int = -1
    lingering: int = 0
    deadly: tuple[int, ...] = ()
    oversized: tuple[int, ...] = ()
    failing: bool = True
    commit_waits_for_acknowledgment: bool = True
    commit_is_contiguous: bool = True
    warm_up: bool = True
    tombstone_waits_for_letter: bool = True
    refused_waits_for_letter: bool = True
    no_tombstone_on_revoke: bool = True
    revoke_flushes: bool = True
    commit_stops_at_unstarted: bool = True
    committed_is_kept: bool = True
    wait_id_is_computed: bool = True

    def initial(self) -> State:
        dead = self.new_instance()
        bounds = (self.crashes, self.losses, self.revocations, self.renewals, self.lingering)
        return State(0, (UNTOUCHED,) * self.records, (dead, dead), 0, *bounds, ())

    def new_instance(self) -> Instance:
        """Return an instance that has just started."""
        return Instance(WITHOUT, 0, 0, 0, -1, 0, 0, (), ("",) * self.records)

    def canonical(self, state: State) -> State:
        if not self.wait_id_is_computed:
            return state
        one, two = state.instances
        return state if (one or ()) <= (two or ()) else state._replace(instances=(two, one))

    def broken(self, state: State) -> str | None:
        for record, fate in enumerate(state.fates):
            if record < state.committed:
                if not fate[REGISTERED]:
                    return f"P2: the committed offset has passed record {record}, which nothing acknowledged stands for"
                if not (fate[STANDING] or fate[DONE] or fate[LETTER]):
                    return f"P1: record {record} is lost if its process dies now: not registered, done or dead-lettered"
            # Where its commit was not answered when the partition moved, both owners may have to start it.
            moves = self.losses - state.losses + self.revocations - state.revocations
            if fate[KILLS] > 1 + moves:
                return f"P1: record {record} kills one process after another instead of expiring"
        return None

    def settled(self, state: State) -> bool:
        if state.committed < self.records or state.sent:
            return False
        if any(instance is not None and (instance.entries or any(instance.queues)) for instance in state.instances):
            return False
        # What no process works on expires: only after a fault.
        return bool(state.faulted) or not any(fate[STANDING] for fate in state.fates)

    def steps(self, state: State) -> list[Step]:
        steps: list[Step] = []
        group_steps(self, state, steps)
        lingering_steps(state, steps)
        for which, instance in enumerate(state.instances):
            if instance is not None:
                producer_steps(self, state, which, instance, steps)
                instance_steps(self, state, which, instance, steps)
        return steps

    def wait_id(self, which: int) -> int:
        """Return the bit of the wait id under which an instance registers a record."""
        return 1 if self.wait_id_is_computed else 1 << which
