"""Changes of jobs that were started: approve, pause, resume, cancel, and another rate."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

from wait_registry.dead_letters.filter import parse_filter
from wait_registry.errors import ConfigurationError
from wait_registry.records.operation import Requested, State
from waitreg.console.access.permission import permit, permit_approval
from waitreg.console.actions.actions import Actions
from waitreg.console.formatting import job_link
from waitreg.console.page import Asked, Redirect, View
from waitreg.console.refusals import NotAllowed
from waitreg.console.tables import Tables
from waitreg.redrive.approval import require_begun


def approve(asked: Asked[Actions], tables: Tables) -> Redirect:
    """Approve a job of another person, and run it in this console; the second time, only show it."""
    actions, name = asked.actions, asked.path["job"]
    tables.release()
    progress = actions.job(name)
    job = progress.requested
    permission = permit_approval(tables.person, job)
    _require_edits(actions, job)
    if hidden := hidden_of(job, tables):
        raise NotAllowed(hidden)
    if progress.state is State.AWAITING:
        actions.approve(permission, asked.reason())
    return to_job(name)


def rate(asked: Asked[Actions], tables: Tables) -> Redirect:
    """Change the rate of a job from its next chunk on."""
    name = asked.path["job"]
    try:
        wanted = float(asked.field("rate"))
    except ValueError:
        raise ConfigurationError("rate is a number per second") from None
    tables.release()
    progress = asked.actions.job(name)
    permission = permit(tables.person, progress.requested)
    require_begun(progress)
    asked.actions.change_rate(permission, wanted)
    return to_job(name)


def change_to(state: State) -> View[Actions]:
    """Return the view that pauses a job before its next chunk, continues it in this console, or cancels it for good."""
    return partial(_change, state)


def _change(state: State, asked: Asked[Actions], tables: Tables) -> Redirect:
    actions, name = asked.actions, asked.path["job"]
    reason = asked.reason(default="asked for in the console")
    tables.release()
    progress = actions.job(name)
    permission = permit(tables.person, progress.requested)
    if state is not State.CANCELLED:
        require_begun(progress)
    if state is State.RUNNING:
        _require_edits(actions, progress.requested)
    actions.change(permission, state, reason)
    return to_job(name, f"?asked={state.value}")


def hidden_of(job: Requested, tables: Tables) -> str:
    """Return why a person can't approve a job of which something isn't shown to them; "" if all of it is."""
    edits = job.replacement is not None and not tables.shows_all_contents
    chosen = parse_filter(job.conditions, datetime.now(UTC))
    if not edits and not tables.hides_one_of(chosen.fields, chosen):
        return ""
    return "Something of what this job means is hidden from you, so another person has to approve it."


def to_job(name: str, asked: str = "") -> Redirect:
    """Lead to the page of a job; ``asked`` is what its address has behind the path."""
    return Redirect(f"{job_link(name)}{asked}")


def _require_edits(actions: Actions, job: Requested) -> None:
    if job.replacement is not None and not actions.edits:
        raise NotAllowed("This job sends an edited record, which this console doesn't: see console.edit.")
