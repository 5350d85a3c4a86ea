"""How far a job has come: what the tables show of it, and after that each event of the operations topic."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Final

from wait_registry.records.operation import Advanced, Approved, Changed, JobEvent, RateChanged, Requested, State

ENDED: Final = (State.CANCELLED, State.FINISHED)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job has come.

    Attributes:
        requested: what was asked for.
        state: its state.
        cursor: that of its last dead letter.
        counts: its dead letters by category.
        approved_by: who has approved it, if another person has.
        rate: records per second, as it was asked for last.
        counted_from: the offset of the operations topic from which its records count: 0, or where it was resumed.
        sent: how many records it has redriven since then.
    """

    requested: Requested
    state: State
    cursor: tuple[str | int, ...] | None = None
    counts: Counter[str] = field(default_factory=Counter)
    approved_by: str | None = None
    rate: float = 0.0
    counted_from: int = 0
    sent: int = 0

    def after(self, event: JobEvent, offset: int) -> Progress:
        """Return how the job stands after its next event; the queries of the sink have the same rules for the tables.

        An approval counts if the job awaits it, and if it is of another person than the one who asked for the job.

        Args:
            event: the event.
            offset: of the event.
        """
        awaits = self.state is State.AWAITING
        match event:
            case Advanced():
                return replace(self, cursor=event.cursor, counts=Counter(event.counts))
            case RateChanged():
                return replace(self, rate=event.rate)
            case Approved() if awaits and event.by != self.requested.by:
                return replace(self, state=State.RUNNING, approved_by=event.by)
            case Changed() if self.state not in ENDED and (not awaits or event.state is State.CANCELLED):
                changed = replace(self, state=event.state)
                return replace(changed, counted_from=offset, sent=0) if event.state is State.RUNNING else changed
        return self


def begun(job: Requested) -> Progress:
    """Return how a job stands when it was only asked for."""
    return Progress(job, State.AWAITING if job.approval else State.RUNNING, rate=job.rate)
