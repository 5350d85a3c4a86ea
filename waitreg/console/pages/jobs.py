"""Jobs: who redrove, archived or restored which dead letters, and what became of the redriven records."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from wait_registry.dead_letters.dead_letter import find
from wait_registry.dead_letters.filter import Filter, parse_filter
from wait_registry.dead_letters.listing import Rows
from wait_registry.dead_letters.outcome_reader import outcome_rows
from wait_registry.errors import ConfigurationError
from wait_registry.records.operation import Kind, Requested, State
from waitreg.console.access.grants import Right
from waitreg.console.access.masks import HIDDEN
from waitreg.console.access.permission import approval_obstacle, may_follow, role_missing
from waitreg.console.actions.actions import Actions
from waitreg.console.actions.executors import Run
from waitreg.console.formatting import dead_letters_link, job_link
from waitreg.console.page import Asked, Page
from waitreg.console.pages.buttons import Button
from waitreg.console.pages.dry_run import ALLOWANCES, TARGETS
from waitreg.console.pages.job_changes import hidden_of
from waitreg.console.refusals import NotThere
from waitreg.console.tables import Tables
from waitreg.redrive.approval import to_send
from waitreg.redrive.edit import what_changes
from waitreg.redrive.job_decision import DONE, Category
from waitreg.redrive.job_listing import audit as done
from waitreg.redrive.job_listing import done_before, history, require_job
from waitreg.redrive.job_listing import jobs as newest
from waitreg.redrive.progress import ENDED

ROWS: Final = 100
SINCE: Final = "7d"


def jobs(asked: Asked[Actions | None], tables: Tables) -> Page:
    """List the newest jobs."""
    return Page("jobs.html", {"title": "Jobs", "found": tables.without_contents(newest(tables, ROWS))})


def audit(asked: Asked[Actions | None], tables: Tables) -> Page:
    """List what operators did, the newest first; each delivery of it, if that is asked for or a place is given."""
    given = {"since": SINCE, **asked.values()}
    (since,) = parse_filter([f"since={given['since']}"], asked.now).conditions
    only = {name: given[name] for name in ("by", "job", "place") if name in given}
    deliveries = "deliveries" in given or "place" in given
    found = tables.without_contents(done(tables, since.value, ROWS, deliveries=deliveries, **only))
    return Page("audit.html", {"title": "Audit", "given": given, "found": found})


def job(asked: Asked[Actions | None], tables: Tables) -> Page:
    """Show one job, how far it has come, and what became of its records."""
    name = asked.path["job"]
    here = None if asked.actions is None else asked.actions.executors.shown(name)
    if here is not None and not may_follow(tables.person, here.job):
        here = None
    facts, of = _facts(tables, name, here)
    if here is not None and here.progress.state is State.AWAITING and "changed_at" in facts:
        here = None
    state = _state(State(facts["state"]), here)
    edit, place = _edit(tables, of, asked.now)
    values = {
        "title": f"Job {name}",
        "facts": facts,
        "done": DONE[of.kind].value,
        "asked": _asked(asked.values().get("asked", ""), state),
        "outcomes": outcome_rows(tables.settings, tables, name),
        "history": history(tables, name),
        "before": _done_before(tables, of, facts, here, asked.now),
        "here": here,
        "state": state,
        "edit": edit,
        "awaiting": _awaiting(tables, of, asked.now) if state is State.AWAITING else None,
        "rate": f"{of.rate:g}" if of.kind is Kind.REDRIVE and state in (State.RUNNING, State.PAUSED) else "",
        **_changes(tables, of, state, here, asked.actions is not None and state not in ENDED),
    }
    return Page("job.html", values, contents_of=place)


def _state(in_tables: State, here: Run | None) -> State:
    """Return the state of a job: while it runs here, the tables are behind; afterwards it may end elsewhere."""
    return in_tables if here is None or (not here.is_alive() and in_tables in ENDED) else here.progress.state


def _asked(wanted: str, state: State) -> str:
    """Return the state that a person has just asked for, as long as the job isn't in it."""
    return wanted if wanted in (State.PAUSED, State.CANCELLED) and state not in (wanted, *ENDED) else ""


def _facts(tables: Tables, name: str, here: Run | None) -> tuple[Mapping[str, Any], Requested]:
    """Return what the tables have of a job; what just begins here, the sink may not have read yet."""
    try:
        row = require_job(tables, name)
    except ConfigurationError as error:
        if here is None:
            raise NotThere(str(error)) from None
        of = here.job
        known = {
            "job": of.job,
            "kind": of.kind.value,
            "group": of.group,
            "state": here.progress.state.value,
            "by": of.by,
        }
        return {**known, "reason": of.reason}, of
    found = tables.without_contents(newest(tables, 1, name))
    (shown,) = found.rows
    return dict(zip(found.columns, shown, strict=True)), row.requested


def _changes(tables: Tables, of: Requested, state: State, here: Run | None, can: bool) -> dict[str, Any]:
    """Return what can be asked of a job now, with the role that the person lacks for it."""
    if not can:
        return {"buttons": [], "cancel": None}
    missing, path = role_missing(tables.person, of), job_link(of.job)
    begun, running = state is not State.AWAITING, here is not None and here.is_alive()
    pause = [Button("Pause the job", f"{path}/pause", missing)] if begun and state is not State.PAUSED else []
    resume = [Button("Resume the job", f"{path}/resume", missing)] if begun and not running else []
    return {"buttons": pause + resume, "cancel": Button("Cancel the job", f"{path}/cancel", missing)}


def _edit(tables: Tables, of: Requested, now: datetime) -> tuple[str, str]:
    """Return what the job's edit changes, or why it isn't shown, and the place whose contents that shows."""
    if of.replacement is None:
        return "", ""
    (place,) = parse_filter(of.conditions, now).exact_values("place")
    try:
        dead_letter = find(tables, place)[0]
    except ConfigurationError:
        return "The tables have no such dead letter any more.", ""
    if tables.hides_part_of(dead_letter):
        return "The record is hidden from you.", ""
    return "\n".join(what_changes(dead_letter.content, of.replacement)), place


def _awaiting(tables: Tables, of: Requested, now: datetime) -> dict[str, Any]:
    """Return what is approved with a job: its conditions, counts and options, and who can approve it."""
    chosen = parse_filter(of.conditions, now)
    allowances = {name.value: text for name, text in ALLOWANCES.items()}
    options = {
        "to": TARGETS.get(of.target, of.target),
        "rate": f"{of.rate:g} per second",
        "limit": of.limit,
        "canary": of.canary,
        **{name: allowances.get(name, name) for name in of.allowed},
    }
    hidden = tables.hides_one_of(chosen.fields, chosen)
    return {
        "conditions": [HIDDEN if tables.hides_one_of([one.field], chosen) else str(one) for one in chosen.conditions],
        # It has no mark yet, by which its dead letters are found later.
        "list": "" if hidden else dead_letters_link(map(str, chosen.conditions), "365d"),
        "expected": sorted(of.expected.items(), key=lambda pair: -pair[1]),
        "to_send": to_send(of),
        "options": {name: value for name, value in options.items() if value is not None},
        "obstacle": approval_obstacle(tables.person, of) or hidden_of(of, tables),
        "missing": role_missing(tables.person, of, Right.APPROVE),
    }


def _done_before(
    tables: Tables, of: Requested, facts: Mapping[str, Any], here: Run | None, now: datetime
) -> Rows | None:
    """Return whose jobs came before this one, if it found what they had done, and if its conditions may be seen."""
    counts = str(facts.get("dead_letters") or "") if here is None else " ".join(here.progress.counts)
    if Category.ALREADY_REDRIVEN not in counts:
        return None
    chosen = parse_filter(of.conditions, now)
    if tables.hides_one_of(chosen.fields, chosen):
        return None
    kept = tuple(condition for condition in chosen.conditions if condition.field != "state")
    return done_before(tables, Filter(kept), of.job)
