"""A dead letter as lines for a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

from wait_registry.dead_letters.dead_letter import FACTS, DeadLetter, Redriven
from wait_registry.dead_letters.decoded import Decoded, decoded
from wait_registry.display import bytes_text, lines_of, safe, value_text
from wait_registry.errors import ConfigurationError
from wait_registry.schemas.registry import SchemaRegistry

_INDENT = "  "
# A terminal shows no more bytes of a value.
_MOST_BYTES: Final = 2048


def lines(dead_letter: DeadLetter, registry: SchemaRegistry | None, redriven: Redriven | None = None) -> Iterator[str]:
    """Yield the lines that show a dead letter.

    Args:
        dead_letter: which one.
        registry: the schemas of values; None if there is none.
        redriven: the last redrive of its delivery, if there was one.
    """
    row, content, places = dead_letter.row, dead_letter.content, dead_letter.places()
    yield f"dead letter {dead_letter.place}, {row['reason'] or 'foreign'}, at {row['dead_letter_time']}"
    if row["state"] != "open":
        because = f": {safe(row['job_reason'])}" if row["job_reason"] else ""
        by, job = safe(row["state_by"] or ""), safe(row["job"] or "")
        yield f"{row['state']} by {by} at {row['state_at']}, job {job}{because}"
    for label, text in (
        ("record", places.get("record")),
        ("produced", dead_letter.produced()),
        ("consumed at", places.get("consumed at")),
        ("group", row["consumer_group"]),
        ("instance", row["instance"]),
        ("delivery", row["delivery"]),
        ("wait ID", row["wait_expiration_uuid"]),
        ("idempotency key", row["idempotency_key"]),
    ):
        if text not in (None, ""):
            yield f"{_INDENT}{label:<16}{safe(str(text))}"
    if row["error_class"] is not None:
        yield f"error: {safe(row['error_class'])}: {safe(row['error_message'] or '')}"
    yield f"was it done? {dead_letter.may_be_done(redriven)}"
    yield from _content("key", content.key)
    yield f"headers: {len(content.headers)}"
    for name, value in content.headers:
        yield f"{_INDENT}{safe(name)} = {value_text(value)}"
    yield from _content("value", content.value, decoded(content.value, registry, content.headers))
    if "\n" in (row["error_stacktrace"] or "").rstrip():  # otherwise it is the error again
        yield "stack trace:"
        for line in safe(row["error_stacktrace"], "\n\t").rstrip().split("\n"):
            yield f"{_INDENT}{line}"


def as_json(dead_letter: DeadLetter, redriven: Redriven | None = None) -> str:
    """Return one JSON object with everything that `lines` shows, whole; arguments as there.

    Bytes are text, else ``\\x`` and hexadecimal digits, as the condition ``key=`` takes them.
    """
    row, content = dead_letter.row, dead_letter.content
    shown = {name: row[name] for name in (*FACTS, "error_stacktrace", "finished_late")}
    fields = {
        "place": str(dead_letter.place),
        **{name.replace(" ", "_"): str(place) for name, place in dead_letter.places().items()},
        **{name: value.isoformat() if isinstance(value, datetime) else value for name, value in shown.items()},
        "may_be_done": dead_letter.may_be_done(redriven),
        "key": _text(content.key),
        "headers": [[name, _text(value)] for name, value in content.headers],
        "value": _text(content.value),
    }
    return json.dumps(fields, ensure_ascii=False)


def _text(data: bytes | None) -> str | None:
    return None if data is None else bytes_text(data)


def write_body(dead_letter: DeadLetter, file: Path) -> None:
    """Write the value of a dead letter to a new file.

    Raises:
        ConfigurationError: the value is null, the file exists or can't be written.
    """
    if dead_letter.content.value is None:
        raise ConfigurationError(f"the value of {dead_letter.place} is null, so {file} wasn't written")
    try:
        with file.open("xb") as opened:
            opened.write(dead_letter.content.value)
    except OSError as error:
        raise ConfigurationError(f"{file} can't be written: {error.strerror}; name a new file") from error


def _content(name: str, data: bytes | None, shown: Decoded | None = None) -> Iterator[str]:
    if data is None:
        yield f"{name}: null"
        return
    about = f", {shown.format or shown.problem}" if shown else ""
    yield f"{name}: {len(data)} bytes{safe(about)}"
    whole = shown.text.encode() if shown and shown.text else data
    for line in lines_of(whole, _MOST_BYTES) if data else ():
        yield f"{_INDENT}{line}"
    if len(whole) > _MOST_BYTES and name == "value":
        yield f"{_INDENT}(--body FILE writes the whole value, --json prints all of it)"
