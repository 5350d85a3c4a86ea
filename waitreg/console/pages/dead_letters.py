"""Dead letters: counts by some fields, the list with its pages, one of them, and its value as a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from wait_registry.dead_letters.counts import GROUPINGS, groups, parse_by
from wait_registry.dead_letters.dead_letter import FACTS, DeadLetter, find_at
from wait_registry.dead_letters.decoded import Decoded, decoded
from wait_registry.dead_letters.difference import Content
from wait_registry.dead_letters.filter import FIELDS, literal, parse_filter
from wait_registry.dead_letters.listing import Rows, page, parse_cursor
from wait_registry.dead_letters.outcome_reader import last_redrive
from wait_registry.display import lines_of, safe, value_text
from wait_registry.postgres.query_file import load_query
from wait_registry.records.operation import Place
from waitreg.console.access.grants import Right
from waitreg.console.access.masks import HIDDEN
from waitreg.console.access.permission import group_and_topic, lacking, permit_reveal, reveal_obstacle
from waitreg.console.actions.actions import Actions
from waitreg.console.actions.tokens import REVEAL_S
from waitreg.console.formatting import Cell, cells, dead_letter_link, dead_letters_link
from waitreg.console.page import Asked, Download, Page, Redirect, address
from waitreg.console.pages.buttons import Button, buttons
from waitreg.console.pages.dry_run import names_some
from waitreg.console.refusals import NotThere
from waitreg.console.tables import Tables

ROWS: Final = 100
WINDOW: Final = "24h"
_BY: Final = "error,topic,reason"
_NAMES: Final = {"wait_expiration_uuid": "wait ID", "original_timestamp": "produced", "job_reason": "reason of the job"}


def dead_letters_page(asked: Asked[Actions | None], tables: Tables) -> Page:
    """List dead letters, or count them by the fields of ``by``; each count links to its list."""
    given = asked.values()
    named = asked.conditions()
    # Who asks for nothing sees what there is to do. An empty condition, as the form sends it, means all.
    conditions = ["state=open"] if named is None else named
    since = given.get("since", WINDOW)
    chosen = parse_filter([*conditions, f"since={since}"], asked.now)
    tables.require_content(chosen.fields, chosen)
    kept = [*(("where", condition) for condition in conditions), ("since", since)]
    by = given.get("by", "" if named else _BY)
    values: dict[str, Any] = {
        "title": "Dead letters", "conditions": conditions, "since": since, "by": by, "fields": FIELDS,
        "groupings": tuple(GROUPINGS), "chosen": str(chosen),
        "buttons": buttons(tables.person, kept) if asked.actions is not None else [], "named": names_some(chosen),
        "reads_only": asked.actions is None,
        "longer": _list(conditions, "30d", by), **_any_state(conditions, since, by),
    }  # fmt: skip
    if by and by != "none":
        fields = parse_by(by)
        tables.require_content(fields, chosen)
        counted = groups(tables, chosen, fields, ROWS)
        links = [address("/dead-letters", *kept, *_of_group(counted, row), ("by", "none")) for row in counted.rows]
        return Page("dead_letters.html", {**values, "found": counted, "links": links, "following": "", "counts": ""})
    after = given.get("after")
    found = page(tables, chosen, ROWS, None if after is None else parse_cursor(after))
    following = ""
    if found.following is not None:
        following = address("/dead-letters", *kept, ("by", "none"), ("after", str(found.following)))
    shown = found._replace(rows=[_seen(dict(zip(found.columns, row, strict=True)), tables) for row in found.rows])
    counts = address("/dead-letters", *kept, ("by", _BY))
    return Page("dead_letters.html", {**values, "found": shown, "links": [], "following": following, "counts": counts})


def _list(conditions: Sequence[str], since: str, by: str) -> str:
    # No condition at all would mean those that are open.
    return dead_letters_link(conditions or [""], since, by or "none")


def _any_state(conditions: Sequence[str], since: str, by: str) -> Mapping[str, Any]:
    """Return the conditions on the state, and the address of the same list without these."""
    states = [condition for condition in conditions if condition.startswith("state")]
    others = [condition for condition in conditions if condition not in states]
    return {"states": states, "any_state": _list(others, since, by)}


def dead_letter_page(asked: Asked[Actions | None], tables: Tables) -> Page:
    """Show one dead letter, and what happened to its record."""
    found = find_dead_letter(asked.path, tables)
    revealed = _is_revealed(asked, tables, found)
    dead_letter = found if revealed else tables.seen(found)
    key, wait_id = dead_letter.row["idempotency_key"], dead_letter.row["wait_expiration_uuid"]
    redriven = None if wait_id is None else last_redrive(tables.settings, tables, wait_id)
    deliveries = [] if key is None else [tables.ask(load_query("record_deliveries"), {"id": key})]
    content = dead_letter.content
    values = {
        "title": f"Dead letter {dead_letter.place}",
        "download": f"{dead_letter_link(*dead_letter.place)}/value" if tables.may_export(dead_letter) else "",
        "bytes": len(content.value or b""),
        "facts": _facts(dead_letter),
        "done": dead_letter.may_be_done(redriven),
        "key": _lines(content.key),
        "value": _lines(content.value),
        "decoded": _decoded(content, tables),
        "headers": [(safe(name), value_text(value)) for name, value in content.headers],
        "stack_trace": safe(dead_letter.row["error_stacktrace"] or "", "\n\t"),
        "answers": deliveries,
        "buttons": _buttons_of(dead_letter, tables, asked.actions),
        "revealed_s": REVEAL_S if revealed else 0,
        "hidden": tables.hides_part_of(dead_letter),
        "obstacle": _obstacle(asked, tables, found),
        "reveal": f"{dead_letter_link(*dead_letter.place)}/reveal",
    }
    return Page("dead_letter.html", values, contents_of=str(dead_letter.place) if tables.may_inspect(found) else "")


def reveal(asked: Asked[Actions], tables: Tables) -> Redirect:
    """Record the reason of a person, and show what is hidden of a dead letter to this person."""
    reason = asked.reason()
    dead_letter = find_dead_letter(asked.path, tables)
    permission, link = permit_reveal(tables.person, dead_letter), dead_letter_link(*dead_letter.place)
    if not tables.hides_part_of(dead_letter):
        return Redirect(link)
    tables.release()
    return Redirect(address(link, ("reveal", asked.actions.reveal(permission, reason))))


def _is_revealed(asked: Asked[Actions | None], tables: Tables, dead_letter: DeadLetter) -> bool:
    """Return whether this page shows what is hidden: to whom may see it, with the proof of a recorded reason."""
    if asked.actions is None or reveal_obstacle(tables.person, dead_letter):
        return False
    return asked.actions.reveal_tokens.proves(asked.values().get("reveal", ""), tables.person, dead_letter.place)


def _obstacle(asked: Asked[Actions | None], tables: Tables, dead_letter: DeadLetter) -> str:
    """Return why this console doesn't show a person what is hidden of a dead letter; "" if it can."""
    if not tables.masks.of(dead_letter.row["original_topic"]):
        return reveal_obstacle(tables.person, dead_letter, Right.INSPECT)
    if asked.actions is None:
        return "This console only reads (console.read_only), so it can't record who is shown what is hidden."
    return reveal_obstacle(tables.person, dead_letter)


def value_of_dead_letter(asked: Asked[Actions | None], tables: Tables) -> Download:
    """Give the value of a dead letter, byte for byte."""
    dead_letter = find_dead_letter(asked.path, tables)
    tables.require_export(dead_letter)
    if dead_letter.content.value is None:
        raise NotThere(f"The value of {dead_letter.place} is null.")
    return Download(dead_letter.content.value, str(dead_letter.place))


def edit_link(place: Place) -> str:
    """Return the address at which a dead letter's record is edited."""
    return dead_letter_link(*place).replace("/dead-letters/", "/edit/", 1)


def _buttons_of(dead_letter: DeadLetter, tables: Tables, actions: Actions | None) -> list[Button]:
    group, topic = group_and_topic(dead_letter)
    if actions is None or group is None:
        return []
    chosen = [("where", f"place={literal(str(dead_letter.place))}")]
    found = buttons(tables.person, chosen, group, topic, dead_letter.row["state"])
    missing = lacking(tables.person, (Right.REDRIVE, Right.EDIT), group, topic)
    if actions.edits and (missing or not tables.hides(group, topic)):
        found.append(Button("Edit …", edit_link(dead_letter.place), missing))
    return found


def _seen(row: dict[str, Any], tables: Tables) -> list[Any]:
    """Return the values of a row of the list, without what is hidden of it."""
    topic = row["record"].rsplit(":", 2)[0] if row["record"] else None
    if tables.hides(row["group"], topic):
        row |= {name: HIDDEN for name in ("key", "message") if row[name] is not None}
    return list(row.values())


def _of_group(counted: Rows, row: Any) -> list[tuple[str, str]]:
    """Return the conditions that all of one group meet; a field without a value, or an hour, has none."""
    pairs = zip(counted.columns, row, strict=True)
    return [
        ("where", f"{name}={_pattern(name, str(value))}")
        for name, value in pairs
        if name in FIELDS and value not in (None, "")
    ]


def _pattern(name: str, value: str) -> str:
    """Return what matches the values of a group; messages are counted by their beginning, without numbers."""
    return f"{literal(value).replace('#', '*')}*" if name == "message" else literal(value)


def find_dead_letter(path: Mapping[str, str], tables: Tables) -> DeadLetter:
    """Return the dead letter that an address names.

    Raises:
        NotThere: the tables have none there.
    """
    place = Place(path["topic"], int(path["partition"]), int(path["offset"]))
    found = find_at(tables, place)
    if not found:
        raise NotThere(f"The tables have no dead letter {place}. They keep dead letters for sweeper.retention_days.")
    return found[0]


def _facts(dead_letter: DeadLetter) -> Mapping[str, Cell]:
    row = {**dead_letter.row, "original_timestamp": dead_letter.produced()}
    facts = {name: row[name] for name in FACTS if row[name] not in (None, "")} | dead_letter.places()
    shown = cells(list(facts), list(facts.values()))
    return {_NAMES.get(name, name.replace("_", " ")): cell for name, cell in zip(facts, shown, strict=True)}


def _decoded(content: Content, tables: Tables) -> Decoded | None:
    found = decoded(content.value, tables.registry, content.headers)
    if found is None:
        return None
    return found._replace(text="\n".join(lines_of(found.text.encode())), problem=safe(found.problem))


def _lines(data: bytes | None) -> str | None:
    return None if data is None else "\n".join(lines_of(data))
