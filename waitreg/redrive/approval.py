"""The second person: which jobs need one, whose approval counts, and the state of a job after each event."""

from __future__ import annotations

from typing import Final, NamedTuple

from wait_registry.errors import ConfigurationError
from wait_registry.records.operation import Approved, Changed, Kind, Requested, State
from wait_registry.settings.redrive import RedriveSettings
from waitreg.redrive.category import DONE

ENDED: Final = (State.CANCELLED, State.FINISHED)


class Course(NamedTuple):
    """The state of a job, and who has approved it."""

    state: State
    approved_by: str | None = None


def first_course(job: Requested) -> Course:
    """Return how a job stands when it was only asked for."""
    return Course(State.AWAITING if job.approval else State.RUNNING)


def to_send(job: Requested) -> int:
    """Return how many dead letters a job acts on, as its dry run counted them."""
    count = job.expected.get(DONE[job.kind], 0)
    return count if job.limit is None else min(count, job.limit)


def needs_approval(limits: RedriveSettings, job: Requested) -> bool:
    """Return whether a job begins only when another person has approved it."""
    most = limits.approve_above if job.kind is Kind.REDRIVE else None
    edited = limits.approve_edits and job.replacement is not None
    return job.approval or edited or (most is not None and to_send(job) > most)


def require_awaiting(job: Requested, state: State, by: str) -> None:
    """Refuse an approval that wouldn't count.

    Args:
        job: what was asked for.
        state: of the job.
        by: who wants to approve it.

    Raises:
        ConfigurationError: the job doesn't await one, or this person asked for it.
    """
    if state is not State.AWAITING:
        raise ConfigurationError(f"job {job.job} doesn't await an approval: it is {state.value}")
    if by == job.by:
        raise ConfigurationError(f"{by} asked for job {job.job}, so another person has to approve it")


def require_begun(job: Requested, state: State) -> None:
    """Refuse a change of what an approval is about; what was approved may be changed.

    Raises:
        ConfigurationError: the job awaits an approval.
    """
    if state is State.AWAITING:
        raise ConfigurationError(f"job {job.job} awaits an approval: it can only be approved or cancelled")


def after(course: Course, event: Changed | Approved, job: Requested) -> Course:
    """Return how a job stands after an event; the queries of the sink have the same rule for the tables.

    An approval counts if the job awaits it, and if it is of another person than the one who asked for the job.

    Args:
        course: how it stood before.
        event: the event.
        job: what was asked for.
    """
    if isinstance(event, Approved):
        counts = course.state is State.AWAITING and event.by != job.by
        return Course(State.RUNNING, event.by) if counts else course
    if course.state in ENDED or (course.state is State.AWAITING and event.state is not State.CANCELLED):
        return course
    return course._replace(state=event.state)
