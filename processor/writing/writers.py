"""Everything that the processor writes, as the loop uses it."""

from __future__ import annotations

from dataclasses import dataclass

from processor.writing.outbox import Outbox
from processor.writing.outcomes import Outcomes
from processor.writing.wait_records import WaitRecords


@dataclass(frozen=True, slots=True)
class Writers:
    """The writers, which share an outbox.

    Args:
        flush_timeout_s: how long a rebalance or a stop waits for what is written, s.
    """

    outbox: Outbox
    wait_records: WaitRecords
    outcomes: Outcomes
    flush_timeout_s: float

    @property
    def full(self) -> bool:
        """Whether records wait because a producer's queue is full: poll nothing then."""
        return self.outbox.full

    @property
    def waiting(self) -> int:
        """How many records have no answer of the broker."""
        return len(self.outbox)

    @property
    def awaited(self) -> bool:
        """Whether records wait for an answer of the broker: for any but those to tombstones."""
        return len(self.outbox) > self.outcomes.tombstones

    def poll(self) -> None:
        """Put what the broker has answered into the inbox; send what waits for space."""
        self.outbox.poll()
        self.wait_records.report()
        self.outcomes.report()
