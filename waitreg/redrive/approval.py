"""The second person: which jobs need one, and what is refused until a job has its approval."""

from __future__ import annotations

from wait_registry.errors import ConfigurationError
from wait_registry.records.operation import Kind, Requested, State
from wait_registry.settings.redrive import RedriveSettings
from waitreg.redrive.job_decision import DONE
from waitreg.redrive.progress import Progress


def to_send(job: Requested) -> int:
    """Return how many dead letters a job acts on, as its dry run counted them."""
    count = job.expected.get(DONE[job.kind], 0)
    return count if job.limit is None else min(count, job.limit)


def with_approval(limits: RedriveSettings, job: Requested) -> Requested:
    """Return a job that says whether it begins only when another person has approved it, as settings or it ask."""
    most = limits.approve_above if job.kind is Kind.REDRIVE else None
    edited = limits.approve_edits and job.replacement is not None
    many = most is not None and to_send(job) > most
    return job.model_copy(update={"approval": job.approval or edited or many})


def require_awaiting(progress: Progress, by: str) -> None:
    """Refuse an approval that wouldn't count.

    Args:
        progress: of the job.
        by: who wants to approve it.

    Raises:
        ConfigurationError: the job doesn't await one, or this person asked for it.
    """
    job, state = progress.requested, progress.state
    if state is not State.AWAITING:
        raise ConfigurationError(f"job {job.job} doesn't await an approval: it is {state.value}")
    if by == job.by:
        raise ConfigurationError(f"{by} asked for job {job.job}, so another person has to approve it")


def require_begun(progress: Progress) -> None:
    """Refuse a change of what an approval is about; what was approved may be changed.

    Raises:
        ConfigurationError: the job awaits an approval.
    """
    if progress.state is State.AWAITING:
        raise ConfigurationError(
            f"job {progress.requested.job} awaits an approval: it can only be approved or cancelled"
        )
