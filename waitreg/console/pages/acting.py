"""What acts: the dry run of a job with its options, its start, and to pause, resume or cancel it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from wait_registry.dead_letters.filter import FIELDS, Filter, parse_filter
from wait_registry.dead_letters.filter import Kind as FieldKind
from wait_registry.dead_letters.listing import groups_and_topics
from wait_registry.errors import ConfigurationError
from wait_registry.records.operation import Kind, Place, Requested, State
from waitreg.console.access.grants import NotAllowed, Person
from waitreg.console.access.permission import FORCED, lacking, permit, permit_approval, rights, select
from waitreg.console.acting.actor import Actor
from waitreg.console.cells import dead_letter_link
from waitreg.console.page import Asked, Page, Redirect, address
from waitreg.console.tables import Tables
from waitreg.redrive.approval import require_begun, to_send
from waitreg.redrive.category import DONE, MEANINGS, Category
from waitreg.redrive.dry_run import DryRun
from waitreg.redrive.request import Options, selection
from waitreg.redrive.target import ORIGIN, REDELIVERY

# Above it, the number of dead letters is typed before the start.
CONFIRM_ABOVE: Final = 100
MOST_REASON: Final = 500
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


_OF_STATE: Final = {
    "open": (Kind.REDRIVE, Kind.ARCHIVE),
    Kind.REDRIVE.state: (Kind.REDRIVE,),
    Kind.ARCHIVE.state: (Kind.RESTORE,),
}


class Button(NamedTuple):
    """What can be done, its path with the values that go there, and the role that the person lacks for it, or ""."""

    label: str
    path: str
    missing: str = ""
    values: Sequence[tuple[str, str]] = ()


def buttons(
    person: Person,
    chosen: Sequence[tuple[str, str]],
    group: str | None = None,
    topic: str | None = None,
    state: str = "",
) -> list[Button]:
    """Return what can be done with the dead letters of some conditions, all of one group and topic if these are given.

    Args:
        person: who looks.
        chosen: the conditions, as values of an address.
        group: consumer group; None if there may be several: what the person may act on of them is decided later.
        topic: input topic, likewise.
        state: of all of them, if known: what is done to this state isn't offered, and to redrive again needs more.
    """
    found = []
    again = [("allow", Category.ALREADY_REDRIVEN.value)] if state == Kind.REDRIVE.state else []
    for kind in _OF_STATE.get(state, tuple(Kind)):
        needed = rights(kind, [name for _, name in again])
        several = group is None and all(person.pairs(right) for right in needed)
        missing = "" if several else lacking(person, needed, group, topic)
        found.append(Button(f"{kind.value.capitalize()} …", f"/{kind.value}/new", missing, [*chosen, *again]))
    return found


def new(asked: Asked, tables: Tables) -> Page:
    """Show what a job would do with each dead letter; nothing is changed."""
    kind, options = Kind(asked.path["kind"]), _options(asked.values(), asked.query)
    chosen = _chosen(asked, kind, options.allowed)
    tables.require_content(chosen.fields, chosen)
    needed, person = rights(kind, options.allowed, options.target), tables.person
    selected = select(person, kind, chosen, needed, groups_and_topics(tables, chosen))
    tables.release()
    actor = actor_of(asked)
    found = actor.dry_run(selected, options)
    permit(person, found.job)
    acted = to_send(found.job)
    beyond = found.job.expected.get(DONE[kind], 0) - acted
    values = {
        "title": f"{kind.value.capitalize()}: dry run",
        "kind": kind.value,
        "job": found.job,
        "rows": category_rows(found, beyond),
        "total": sum(found.job.expected.values()),
        "targets": sorted(found.targets),
        "beyond": beyond,
        "as_of": found.as_of,
        "narrowed": selected.narrowed,
        "acted": acted,
        "typed": acted > CONFIRM_ABOVE,
        "most_reason": MOST_REASON,
        "approval": actor.needs_approval(found.job),
        "token": actor.tokens.sign(person.name, found.job),
        "form": _form(asked, options, selected.chosen, person, found.job),
    }
    return Page("dry_run.html", values)


def start(asked: Asked, tables: Tables) -> Redirect:
    """Start the job that a dry run showed; the second time, as by a double click, only show it.

    A form that has other options than its dry run leads to a dry run with these.
    """
    given = dict(asked.form)
    job, fresh = actor_of(asked).tokens.read(tables.person.name, given.get("token", ""))
    if _other_options(job, asked.form):
        kept = [(name, value) for name, value in asked.form if value and name not in ("token", "number")]
        return Redirect(address(f"/{job.kind.value}/new", *kept))
    return begin(asked, tables, job.model_copy(update={"reason": given.get("reason", "").strip()}), fresh)


def begin(asked: Asked, tables: Tables, job: Requested, fresh: bool) -> Redirect:
    """Start a job that a person was shown, unless it was started before; ``fresh`` if that was a short time ago."""
    actor, permission = actor_of(asked), permit(tables.person, job)
    if actor.executors.shown(job.job) is None:
        if not fresh:
            raise ConfigurationError("this dry run is older than 15 minutes: make the dry run again")
        require_reason(permission.job.reason)
        count = to_send(job)
        if not count:
            raise ConfigurationError("the dry run has found nothing to do")
        if count > CONFIRM_ABOVE and dict(asked.form).get("number", "").strip() != str(count):
            raise ConfigurationError(f"this is about {count} dead letters: go back and type this number to confirm it")
        actor.start(permission)
    return _to_job(job.job)


def approve(asked: Asked, tables: Tables) -> Redirect:
    """Approve a job of another person, and run it in this console; the second time, only show it."""
    actor, name = actor_of(asked), asked.path["job"]
    tables.release()
    job, state = actor.job(name)
    permission = permit_approval(tables.person, job)
    _require_edits(actor, job)
    if hidden := hidden_of(job, tables):
        raise NotAllowed(hidden)
    if state is State.AWAITING:
        reason = dict(asked.form).get("reason", "").strip()
        require_reason(reason)
        actor.approve(permission, reason)
    return _to_job(name)


def pause(asked: Asked, tables: Tables) -> Redirect:
    """Pause a job before its next chunk."""
    return _change(asked, tables, State.PAUSED)


def resume(asked: Asked, tables: Tables) -> Redirect:
    """Continue a job in this console."""
    return _change(asked, tables, State.RUNNING)


def cancel(asked: Asked, tables: Tables) -> Redirect:
    """End a job before its next chunk, for good."""
    return _change(asked, tables, State.CANCELLED)


def rate(asked: Asked, tables: Tables) -> Redirect:
    """Change the rate of a job from its next chunk on."""
    actor, name = actor_of(asked), asked.path["job"]
    try:
        wanted = float(dict(asked.form).get("rate", ""))
    except ValueError:
        raise ConfigurationError("rate is a number per second") from None
    tables.release()
    job, state = actor.job(name)
    permission = permit(tables.person, job)
    require_begun(job, state)
    actor.change_rate(permission, wanted)
    return _to_job(name)


def _change(asked: Asked, tables: Tables, state: State) -> Redirect:
    actor, name = actor_of(asked), asked.path["job"]
    reason = dict(asked.form).get("reason", "").strip() or "asked for in the console"
    require_reason(reason)
    tables.release()
    job, found = actor.job(name)
    permission = permit(tables.person, job)
    if state is not State.CANCELLED:
        require_begun(job, found)
    if state is State.RUNNING:
        _require_edits(actor, job)
    actor.change(permission, state, reason)
    return _to_job(name, f"?asked={state.value}")


def hidden_of(job: Requested, tables: Tables) -> str:
    """Return why a person can't approve a job of which something isn't shown to them; "" if all of it is."""
    edits = job.replacement is not None and not tables.shows_all_contents
    chosen = parse_filter(job.conditions, datetime.now(UTC))
    if not edits and not tables.hides_one_of(chosen.fields, chosen):
        return ""
    return "Something of what this job means is hidden from you, so another person has to approve it."


def _require_edits(actor: Actor, job: Requested) -> None:
    if job.replacement is not None and not actor.edits:
        raise NotAllowed("This job sends an edited record, which this console doesn't: see console.edit.")


def actor_of(asked: Asked) -> Actor:
    """Return what acts for a page that has an address only if the console acts."""
    assert asked.actor is not None  # a console that only reads has none of these addresses
    return asked.actor


def _to_job(name: str, asked: str = "") -> Redirect:
    return Redirect(f"/jobs/{quote(name, safe='')}{asked}")


def _chosen(asked: Asked, kind: Kind, allowed: Sequence[str]) -> Filter:
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


def require_reason(reason: str) -> None:
    """Refuse a reason that is none.

    Raises:
        ConfigurationError: it is empty, too long, or has characters that can't be printed.
    """
    if not reason or len(reason) > MOST_REASON or not reason.isprintable():
        raise ConfigurationError(
            f"give a reason, one line of at most {MOST_REASON} characters, for those who look later"
        )


def _options(given: Mapping[str, str], query: Sequence[tuple[str, str]]) -> Options:
    allowed = sorted({value for name, value in query if name == "allow"})
    if unknown := [name for name in allowed if name not in ALLOWANCES]:
        raise ConfigurationError(f"{unknown[0]!r} can't be allowed; what can is {', '.join(ALLOWANCES)}")
    target = given.get("to", REDELIVERY)
    if target not in TARGETS:
        raise ConfigurationError(f"{target!r} is no target: {REDELIVERY} or {ORIGIN}")
    rate, limit, canary = given.get("rate"), given.get("limit"), given.get("canary")
    try:
        rate_of = None if rate is None else float(rate)
        return Options("", target, rate_of, _count(limit), tuple(allowed), _count(canary))
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


class CategoryRow(NamedTuple):
    """A category of the dry run with the places and the addresses of some of its dead letters."""

    category: str
    dead_letters: int
    meaning: str
    examples: Sequence[tuple[Place, str]]


def category_rows(found: DryRun, beyond: int = 0) -> Sequence[CategoryRow]:
    """Return the categories of a dry run, the largest first; ``beyond`` dead letters are beyond its limit."""
    acted = DONE[found.job.kind]
    counts = sorted(found.job.expected.items(), key=lambda pair: -pair[1])
    examples = {
        name: [(place, dead_letter_link(*place)) for place in places] for name, places in found.examples.items()
    }
    rows = [
        CategoryRow(name, count - beyond if name == acted else count, MEANINGS[Category(name)], examples[name])
        for name, count in counts
    ]
    return [*rows, CategoryRow("", beyond, "beyond the limit, so not part of the job", [])] if beyond else rows


def _form(asked: Asked, options: Options, chosen: Filter, person: Person, job: Requested) -> dict[str, Any]:
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
