"""The dry run of a job with its options, and the start of the job that it showed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from wait_registry.dead_letters.filter import FIELDS, Filter
from wait_registry.dead_letters.filter import Kind as FieldKind
from wait_registry.dead_letters.listing import groups_and_topics
from wait_registry.errors import ConfigurationError
from wait_registry.records.operation import Kind, Place, Requested
from waitreg.console.access.grants import Person
from waitreg.console.access.permission import FORCED, lacking, permit, rights, select
from waitreg.console.actions.actions import Actions
from waitreg.console.page import Asked, Page, Redirect, address, require_reason
from waitreg.console.pages.job_changes import to_job
from waitreg.console.tables import Tables
from waitreg.redrive.approval import to_send
from waitreg.redrive.dry_run import DryRun
from waitreg.redrive.job_decision import DONE, MEANINGS, Category
from waitreg.redrive.request import Options, selection
from waitreg.redrive.target import ORIGIN, REDELIVERY

# Above it, the number of dead letters is typed before the start.
CONFIRM_ABOVE: Final = 100
ALLOWANCES: Final = {
    Category.MAY_BE_DONE: "Also what expired. The work may have been done, and would be done twice.",
    Category.NO_MEMBERS: "Also if the group has no member now. What is sent is read when one starts.",
    Category.ALREADY_REDRIVEN: "Also what was redriven before. The work may be done once more.",
    Category.FINISHED_LATE: "Also what was done after its deadline. The work is done twice.",
    Category.MAX_REDRIVES: "Also what was redriven redrive.max_redrives times.",
}
TARGETS: Final = {
    REDELIVERY: "the redelivery topic, which this group alone reads",
    ORIGIN: "the input topic: each group that reads it gets the records again",
}


def new(asked: Asked[Actions], tables: Tables) -> Page:
    """Show what a job would do with each dead letter; nothing is changed."""
    kind, options = Kind(asked.path["kind"]), _options(asked.values(), asked.query)
    chosen = _chosen(asked, kind, options.allowed)
    tables.require_content(chosen.fields, chosen)
    needed, person = rights(kind, options.allowed, options.target), tables.person
    selected = select(person, kind, chosen, needed, groups_and_topics(tables, chosen))
    tables.release()
    found = asked.actions.dry_run(selected, options)
    permit(person, found.job)
    acted = to_send(found.job)
    beyond = found.job.expected.get(DONE[kind], 0) - acted
    values = {
        "title": f"{kind.value.capitalize()}: dry run",
        "kind": kind.value,
        "found": found,
        "rows": category_rows(found, beyond),
        "beyond": beyond,
        "narrowed": selected.narrowed,
        "acted": acted,
        "typed": acted > CONFIRM_ABOVE,
        "approval": found.job.approval,
        "token": asked.actions.job_tokens.sign(person.name, found.job),
        "form": _form(asked, options, selected.chosen, person, found.job),
    }
    return Page("dry_run.html", values)


def start(asked: Asked[Actions], tables: Tables) -> Redirect:
    """Start the job that a dry run showed; the second time, as by a double click, only show it.

    A form that has other options than its dry run leads to a dry run with these.
    """
    job, fresh = asked.actions.job_tokens.read(tables.person.name, asked.field("token"))
    if _other_options(job, asked.form):
        kept = [(name, value) for name, value in asked.form if value and name not in ("token", "number")]
        return Redirect(address(f"/{job.kind.value}/new", *kept))
    return begin(asked, tables, job.model_copy(update={"reason": asked.field("reason")}), fresh)


def begin(asked: Asked[Actions], tables: Tables, job: Requested, fresh: bool) -> Redirect:
    """Start a job that a person was shown, unless it was started before; ``fresh`` if that was a short time ago."""
    permission = permit(tables.person, job)
    if asked.actions.executors.shown(job.job) is None:
        if not fresh:
            raise ConfigurationError("this dry run is older than 15 minutes: make the dry run again")
        require_reason(permission.job.reason)
        count = to_send(job)
        if not count:
            raise ConfigurationError("the dry run has found nothing to do")
        if count > CONFIRM_ABOVE and asked.field("number") != str(count):
            raise ConfigurationError(f"this is about {count} dead letters: go back and type this number to confirm it")
        asked.actions.start(permission)
    return to_job(job.job)


def _chosen(asked: Asked[Actions], kind: Kind, allowed: Sequence[str]) -> Filter:
    texts = asked.conditions() or []
    if "since" in asked.values():
        texts.append(f"since={asked.values()['since']}")
    if texts:
        chosen = selection(texts, kind, allowed, asked.now)
        if names_some(chosen):
            return chosen
    raise ConfigurationError("no dead letter is named: tick some, or give a condition such as group=payments")


def names_some(chosen: Filter) -> bool:
    """Return whether a filter is enough for a job: it says more than a time and a state."""
    return any(FIELDS[one.field].kind is not FieldKind.TIME and one.field != "state" for one in chosen.conditions)


def _options(given: Mapping[str, str], query: Sequence[tuple[str, str]]) -> Options:
    allowed = sorted({value for name, value in query if name == "allow"})
    if unknown := [name for name in allowed if name not in ALLOWANCES]:
        raise ConfigurationError(f"{unknown[0]!r} can't be allowed; what can is {', '.join(ALLOWANCES)}")
    target = given.get("to", REDELIVERY)
    if target not in TARGETS:
        raise ConfigurationError(f"{target!r} is no target: {REDELIVERY} or {ORIGIN}")
    rate = given.get("rate")
    try:
        rate_of = None if rate is None else float(rate)
        return Options("", target, rate_of, _count(given.get("limit")), tuple(allowed), _count(given.get("canary")))
    except ValueError:
        raise ConfigurationError(
            "rate is a number per second, limit and canary are numbers of dead letters from 1 on"
        ) from None


def _count(text: str | None) -> int | None:
    if text is not None and re.fullmatch("[1-9][0-9]{0,8}", text) is None:
        raise ValueError
    return None if text is None else int(text)


def _number(rate: float) -> str:
    """Return the text of a rate, which is read as the same number."""
    short = f"{rate:g}"
    return short if float(short) == rate else str(rate)


def _other_options(job: Requested, form: Sequence[tuple[str, str]]) -> bool:
    """Return whether the form of a start has other options than its dry run."""
    given = {name: value for name, value in form if value}
    options = _options(given, form)
    rate = options.rate if "rate" in dict(form) else job.rate
    asked = (options.target, options.limit, options.canary, options.allowed, rate)
    return "limit" in dict(form) and asked != (job.target, job.limit, job.canary, job.allowed, job.rate)


def category_rows(found: DryRun, beyond: int = 0) -> Sequence[tuple[str, int, str, Sequence[Place]]]:
    """Return category, count, meaning and examples, the largest first; ``beyond`` dead letters are beyond its limit."""
    acted = DONE[found.job.kind]
    counts = sorted(found.job.expected.items(), key=lambda pair: -pair[1])
    rows = [
        (name, count - beyond if name == acted else count, MEANINGS[Category(name)], found.examples[name])
        for name, count in counts
    ]
    return [*rows, ("", beyond, "beyond the limit, so not part of the job", [])] if beyond else rows


def _form(asked: Asked[Actions], options: Options, chosen: Filter, person: Person, job: Requested) -> dict[str, Any]:
    """Return the options as the form shows them: what is given, and what a role is missing for."""
    (group,), topics = chosen.exact_values("group"), chosen.exact_values("topic") or (None,)
    kind = Kind(asked.path["kind"])
    forced = rights(kind, FORCED)
    missing = next(filter(None, (lacking(person, forced, group, topic) for topic in topics)), "")
    return {
        "kept": [(name, value) for name, value in asked.query if name in ("where", "since")],
        "rate": asked.values().get("rate", _number(job.rate)),
        "limit": asked.values().get("limit", ""),
        "canary": asked.values().get("canary", ""),
        "reason": asked.values().get("reason", ""),
        "targets": [
            (name, text, name == options.target, missing if name == ORIGIN else "") for name, text in TARGETS.items()
        ],
        "allowances": [
            (name.value, text, name.value in options.allowed, missing if name in FORCED else "")
            for name, text in ALLOWANCES.items()
        ],
    }
