"""How far a job has come, by the tables and by what the operations topic has beyond them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from wait_registry.records.operation import State
from waitreg.redrive.approval import Course, after, first_course
from waitreg.redrive.job_listing import JobRow
from waitreg.redrive.operations_tail import OperationsTail


@dataclass(frozen=True, slots=True)
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
    cursor: tuple[str | int, ...] | None = None
    counts: Counter[str] = field(default_factory=Counter)
    known: bool = False
    approved_by: str | None = None
    rate: float | None = None


class Sent(NamedTuple):
    """How many records a job has redriven after an offset of the operations topic: 0, or where it was resumed."""

    after: int
    records: int


def progress_of(row: JobRow | None, tail: OperationsTail) -> Progress:
    """Return how far the job of a tail has come.

    Args:
        row: of the job, if the tables have it.
        tail: what the operations topic has beyond the tables.
    """
    requested = tail.requested if row is None else row.requested
    if requested is None:
        return Progress()
    course = first_course(requested) if row is None else Course(row.state, row.approved_by)
    for event in tail.changes:
        course = after(course, event, requested)
    come_to = tail.advanced or row
    cursor, counts = (None, {}) if come_to is None else (come_to.cursor, come_to.counts)
    rate = tail.rate or requested.rate
    return Progress(course.state, cursor, Counter(counts), True, course.approved_by, rate)
