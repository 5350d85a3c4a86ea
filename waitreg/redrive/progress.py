"""How far a job has come, by the tables and by what the operations topic has beyond them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from wait_registry.records.operation import State
from waitreg.redrive.approval import Course, after, first_course
from waitreg.redrive.brake import Sent
from waitreg.redrive.operations_tail import OperationsTail
from waitreg.redrive.view import Cursor, View


@dataclass(slots=True)
class Progress:
    """How far a job has come.

    Attributes:
        state: its state.
        cursor: that of its last dead letter.
        counts: its dead letters by category.
        known: whether it was asked for in the operations topic.
        approved_by: who has approved it, if another person has.
        rate: records per second, as it was asked for last; None if it isn't known.
    """

    state: State = State.RUNNING
    cursor: Cursor | None = None
    counts: Counter[str] = field(default_factory=Counter)
    known: bool = False
    approved_by: str | None = None
    rate: float | None = None


def come_to(view: View, tail: OperationsTail, job: str) -> Progress:
    """Return how far a job has come, by the tables and what the operations topic has beyond them."""
    row = view.job(job)
    requested = tail.requested if row is None else row.requested
    if requested is None:
        return Progress()
    course = first_course(requested) if row is None else Course(row.state, row.approved_by)
    for event in tail.changes:
        course = after(course, event, requested)
    progress = Progress(course.state, known=True, approved_by=course.approved_by, rate=tail.rate or requested.rate)
    if tail.advanced is not None:
        progress.cursor, progress.counts = tail.advanced.cursor, Counter(tail.advanced.counts)
    elif row is not None:
        progress.cursor, progress.counts = row.cursor, Counter(row.counts)
    return progress


def redriven(view: View, tail: OperationsTail, job: str) -> Sent:
    """Return how many records a job has redriven since it was resumed, if it was."""
    if tail.resumed_at is not None:
        return Sent(tail.resumed_at, tail.redriven)
    row = view.job(job)
    after_offset = 0 if row is None else row.counted_from
    return Sent(after_offset, view.redriven(job, after_offset) + tail.redriven)
