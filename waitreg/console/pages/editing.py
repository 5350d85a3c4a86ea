"""A dead letter's record with changes: the page to make them, their review, and the start of the job that sends it."""

from __future__ import annotations

from typing import Any, Final

from wait_registry.dead_letters.dead_letter import DeadLetter
from wait_registry.display import safe
from wait_registry.errors import ConfigurationError
from wait_registry.records.operation import Kind
from waitreg.console.access.grants import Right
from waitreg.console.access.permission import (
    FORCED,
    edit_rights,
    group_and_topic,
    lacking,
    permit,
    rights,
    select,
)
from waitreg.console.actions.actions import Actions
from waitreg.console.formatting import dead_letter_link
from waitreg.console.page import Asked, Page, Redirect
from waitreg.console.pages.dead_letters import edit_link, find_dead_letter
from waitreg.console.pages.dry_run import ALLOWANCES, begin, category_rows
from waitreg.console.pages.edit_form import part, read_edit, value_part
from waitreg.console.refusals import NotAllowed
from waitreg.console.tables import Tables
from waitreg.redrive.edit import is_locked, review
from waitreg.redrive.job_decision import Category
from waitreg.redrive.request import Options, selection

# An edit is of a delivery that wasn't redriven meanwhile.
_ALLOWANCES: Final = {name: text for name, text in ALLOWANCES.items() if name is not Category.ALREADY_REDRIVEN}


def edit(asked: Asked[Actions], tables: Tables) -> Page:
    """Show a record as it can be changed."""
    dead_letter = _editable(asked, tables)
    content, where = dead_letter.content, group_and_topic(dead_letter)
    forced = lacking(tables.person, rights(Kind.REDRIVE, FORCED), *where)
    values: dict[str, Any] = {
        "title": f"Edit {dead_letter.place}",
        "place": str(dead_letter.place),
        "address": edit_link(dead_letter.place),
        "dead_letter": dead_letter_link(*dead_letter.place),
        "value": value_part(content.value),
        "bytes": len(content.value or b""),
        "key": part(content.key),
        "key_needs": lacking(tables.person, (Right.EDIT_KEY,), *where),
        "headers": [(name, part(value), is_locked(name)) for name, value in content.headers],
        "allowances": [(name.value, text, forced if name in FORCED else "") for name, text in _ALLOWANCES.items()],
    }
    return Page("edit.html", values, contents_of=str(dead_letter.place))


def review_edit(asked: Asked[Actions], tables: Tables) -> Page:
    """Show what an edit changes, and what would be done with it; nothing is changed."""
    dead_letter, edited, person = _editable(asked, tables), read_edit(asked.content), tables.person
    if unknown := sorted(set(edited.allowed) - set(_ALLOWANCES)):
        raise ConfigurationError(f"{unknown[0]!r} can't be allowed for an edit")
    found = review(dead_letter.content, edited.content)
    needed = (*rights(Kind.REDRIVE, edited.allowed), *edit_rights(found.replacement))
    chosen = selection([str(dead_letter.place)], Kind.REDRIVE, edited.allowed, asked.now)
    selected = select(person, Kind.REDRIVE, chosen, needed, [group_and_topic(dead_letter)])
    tables.release()
    dry = asked.actions.dry_run(selected, Options(allowed=edited.allowed), found.replacement)
    permit(person, dry.job)
    values = {
        "title": f"Edit {dead_letter.place}: review",
        "sizes": found.sizes,
        "lines": "\n".join(found.lines),
        "rows": category_rows(dry),
        "targets": sorted(dry.targets),
        "token": asked.actions.job_tokens.sign(person.name, dry.job),
        "address": f"{edit_link(dead_letter.place)}/send",
    }
    return Page("edit_review.html", values, contents_of=str(dead_letter.place))


def send(asked: Asked[Actions], tables: Tables) -> Redirect:
    """Start the job of the edit that was reviewed; the second time, as by a double click, only show it."""
    dead_letter, edited = _editable(asked, tables), read_edit(asked.content)
    found = review(dead_letter.content, edited.content)
    job, fresh = asked.actions.job_tokens.read(tables.person.name, edited.token, found.replacement)
    return begin(asked, tables, job.model_copy(update={"reason": edited.reason}), fresh)


def _editable(asked: Asked[Actions], tables: Tables) -> DeadLetter:
    """Return the dead letter of an address, if the person may see and edit all of it."""
    dead_letter = find_dead_letter(asked.path, tables)
    if role := lacking(tables.person, (Right.REDRIVE, Right.EDIT), *group_and_topic(dead_letter)):
        raise NotAllowed(f"To edit dead letter {dead_letter.place}, you need the role {role}.")
    if tables.hides_part_of(dead_letter):
        raise NotAllowed(f"Something of {safe(str(dead_letter.place))} is hidden from you, so you can't edit it here.")
    return dead_letter
