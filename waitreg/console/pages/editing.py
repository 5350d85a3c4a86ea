"""A dead letter's record with changes: the page to make them, their review, and the start of the job that sends it."""

from __future__ import annotations

from typing import Any, Final

from wait_registry.dead_letters.dead_letter import DeadLetter
from wait_registry.display import safe
from wait_registry.errors import ConfigurationError
from wait_registry.records.operation import Kind
from waitreg.console.access.grants import NotAllowed, Right
from waitreg.console.access.permission import FORCED, edit_rights, lacking, permit, rights, select
from waitreg.console.acting.draft import part, read_draft, value_part
from waitreg.console.cells import dead_letter_link
from waitreg.console.page import Asked, Page, Redirect
from waitreg.console.pages.acting import ALLOWANCES, MOST_REASON, actor_of, begin, category_rows
from waitreg.console.pages.dead_letters import edit_link, find_dead_letter
from waitreg.console.tables import Tables
from waitreg.redrive.category import Category
from waitreg.redrive.edit import is_locked, review
from waitreg.redrive.request import Options, selection

# An edit is of a delivery that wasn't redriven meanwhile.
_ALLOWANCES: Final = {name: text for name, text in ALLOWANCES.items() if name is not Category.ALREADY_REDRIVEN}


def edit(asked: Asked, tables: Tables) -> Page:
    """Show a record as it can be changed."""
    letter = _editable(asked, tables)
    content, where = letter.content, _where(letter)
    forced = lacking(tables.person, rights(Kind.REDRIVE, FORCED), *where)
    values: dict[str, Any] = {
        "title": f"Edit {letter.place}",
        "place": str(letter.place),
        "address": edit_link(letter.place),
        "dead_letter": dead_letter_link(*letter.place),
        "value": value_part(content.value),
        "bytes": len(content.value or b""),
        "key": part(content.key),
        "key_needs": lacking(tables.person, (Right.EDIT_KEY,), *where),
        "headers": [(name, part(value), is_locked(name)) for name, value in content.headers],
        "allowances": [(name.value, text, forced if name in FORCED else "") for name, text in _ALLOWANCES.items()],
    }
    return Page("edit.html", values, contents_of=str(letter.place))


def review_edit(asked: Asked, tables: Tables) -> Page:
    """Show what an edit changes, and what would be done with it; nothing is changed."""
    letter, draft, person = _editable(asked, tables), read_draft(asked.content), tables.person
    if unknown := sorted(set(draft.allowed) - set(_ALLOWANCES)):
        raise ConfigurationError(f"{unknown[0]!r} can't be allowed for an edit")
    found = review(letter.content, draft.content)
    needed = (*rights(Kind.REDRIVE, draft.allowed), *edit_rights(found.replacement))
    chosen = selection([str(letter.place)], Kind.REDRIVE, draft.allowed, asked.now)
    selected = select(person, Kind.REDRIVE, chosen, needed, [_where(letter)])
    tables.release()
    actor = actor_of(asked)
    surveyed = actor.dry_run(selected, Options(allowed=draft.allowed), found.replacement)
    permit(person, surveyed.job)
    values = {
        "title": f"Edit {letter.place}: review",
        "sizes": found.sizes,
        "lines": "\n".join(found.lines),
        "rows": category_rows(surveyed),
        "targets": sorted(surveyed.targets),
        "most_reason": MOST_REASON,
        "token": actor.tokens.sign(person.name, surveyed.job),
        "address": f"{edit_link(letter.place)}/send",
    }
    return Page("edit_review.html", values, contents_of=str(letter.place))


def send(asked: Asked, tables: Tables) -> Redirect:
    """Start the job of the edit that was reviewed; the second time, as by a double click, only show it."""
    letter, draft = _editable(asked, tables), read_draft(asked.content)
    found = review(letter.content, draft.content)
    job, fresh = actor_of(asked).tokens.read(tables.person.name, draft.token, found.replacement)
    return begin(asked, tables, job.model_copy(update={"reason": draft.reason}), fresh)


def _editable(asked: Asked, tables: Tables) -> DeadLetter:
    """Return the dead letter of an address, if the person may see and edit all of it."""
    letter = find_dead_letter(asked, tables)
    if role := lacking(tables.person, (Right.REDRIVE, Right.EDIT), *_where(letter)):
        raise NotAllowed(f"To edit dead letter {letter.place}, you need the role {role}.")
    if tables.hides(*_where(letter)):
        raise NotAllowed(f"Something of {safe(str(letter.place))} is hidden from you, so you can't edit it here.")
    return letter


def _where(letter: DeadLetter) -> tuple[str | None, str | None]:
    return letter.row["consumer_group"], letter.row["original_topic"]
