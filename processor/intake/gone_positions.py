"""Whether records may be lost where a log doesn't have the position of its partition any more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from confluent_kafka import Message

from processor.fault import Fault
from processor.intake.assigned_log import AssignedLog
from processor.intake.polled_messages import position_error
from processor.intake.start_offsets import StartOffsets
from wait_registry.records.topics import TopicPartition


@dataclass(slots=True)
class GonePositions:
    """Notes such logs, and checks them: another member of the group may have handled what is gone.

    A retry or redelivery topic continues at its beginning, whichever program has emptied it.

    Args:
        assigned: the logs of the assigned partitions.
        start_offsets: knows what the group has committed, and what the logs have.
        join_again: has every partition start where its committed offset and its log say.
        fault: where lost records are reported.
    """

    assigned: Mapping[TopicPartition, AssignedLog]
    start_offsets: StartOffsets
    join_again: Callable[[str], None]
    fault: Fault
    _noted: list[tuple[AssignedLog, Message]] = field(default_factory=list, init=False)

    def __bool__(self) -> bool:
        """Return whether any is noted."""
        return bool(self._noted)

    def note(self, owner: AssignedLog, message: Message) -> None:
        """Note a log, and what the client returned instead of a record."""
        self._noted.append((owner, message))

    def check(self) -> Callable[[], None]:
        """Return what checks those noted so far; it waits for the broker, so call it in a thread of its own."""
        noted, self._noted = self._noted, []
        positions = {place: owner.position for place, owner in self.assigned.items() if owner.position >= 0}
        return lambda: self._check(noted, positions)

    def _check(self, noted: list[tuple[AssignedLog, Message]], positions: Mapping[TopicPartition, int]) -> None:
        passed = []
        for owner, message in noted:
            if not self.start_offsets.consumed.is_own(owner.topic):
                found = self.start_offsets.is_passed(owner.place, owner.position, self._is_assigned(owner))
                if found is None:
                    continue
                if not found:
                    others = [place for place in self.start_offsets.outside(positions) if place != owner.place]
                    self.fault.report(position_error(owner, message, others))
                    return
            passed.append(repr(owner))
        if passed:
            self.join_again(f"their logs don't have the positions of {', '.join(passed)} any more")

    def _is_assigned(self, owner: AssignedLog) -> Callable[[], bool]:
        return lambda: self.assigned.get(owner.place) is owner
