"""One value of a row as a page shows it: its text, where it leads, and how long ago a moment was."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from wait_registry.dead_letters.filter import literal
from wait_registry.display import safe, value_text
from waitreg.console.page import address

# Longer texts are cut in a table; the page of the dead letter has them whole.
_LONGEST: Final = 160
# Texts of more than this may take several lines.
_ONE_LINE: Final = 48
# The span of time that a row counts: its beginning is the row's name.
_SPANS: Final = frozenset(("minute", "bucket", "hour", "day"))
# Words with a meaning of their own, by column, and how each is marked; the word is always shown, too.
_STATES: Final = {
    "open": "warn", "redriven": "quiet", "archived": "quiet",
    "running": "warn", "paused": "warn", "awaiting": "warn",
    "finished": "quiet", "cancelled": "quiet", "stopped": "bad",
}  # fmt: skip
_REASONS: Final = {
    "failed": "bad", "expired": "bad", "blocked": "warn", "malformed": "warn", "unregistrable": "warn",
    "foreign": "quiet",
}  # fmt: skip
_TONES: Final[Mapping[str, Mapping[str, str]]] = {
    "state": _STATES,
    "reason": _REASONS,
    "result": {"done": "good", "partial": "warn", "skipped": "quiet", "failed": "bad"},
    "outcome": {"waiting": "warn", "dead letter again": "bad", "done, discarded or in a retry topic": "good"},
}
# The unit, its length and up to which distance it is used, s.
_UNITS: Final = (("s", 1, 60), ("min", 60, 3_600), ("h", 3_600, 172_800), ("d", 86_400, None))
_NOW_S: Final = 1.0


class Cell(NamedTuple):
    """A text, the address that it links to (or ""), and how both are shown.

    ``kind`` is "number" (aligned at the right), "long" (may take several lines) or "". ``tone`` marks a state: "good",
    "warn", "bad", "quiet" or "". ``at`` is the moment that the text names, if pages may show how long ago it was.
    """

    text: str
    link: str = ""
    kind: str = ""
    tone: str = ""
    at: datetime | None = None


def cells(columns: Sequence[str], row: Sequence[Any]) -> Iterator[Cell]:
    """Yield the cells of a row."""
    values = dict(zip(columns, row, strict=True))
    for column, value in values.items():
        link = "" if value in (None, "") else _link(column, str(value), values)
        text = _cut(shown(value))
        at = value if isinstance(value, datetime) and column not in _SPANS else None
        yield Cell(text, link, _kind(value, text), _TONES.get(column, {}).get(text, ""), at)


def shown(value: object) -> str:
    """Return a value as text; times are UTC to the second, and no character hides or moves another."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
    if isinstance(value, timedelta):
        return str(timedelta(seconds=round(value.total_seconds())))
    if isinstance(value, bytes | memoryview):
        return value_text(bytes(value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return safe(str(value), "\n\t")


def ago(at: datetime, now: datetime) -> str:
    """Return the distance between two times.

    Args:
        at: with a time zone.
        now: when the page was asked for, with a time zone.

    Returns:
        Such as "12 min ago" or "in 5 h": whole units, rounded down; "now" within a second.
    """
    seconds = (now - at).total_seconds()
    distance = abs(seconds)
    if distance < _NOW_S:
        return "now"
    unit, length = next((unit, length) for unit, length, most in _UNITS if most is None or distance < most)
    text = f"{int(distance // length)} {unit}"
    return f"{text} ago" if seconds > 0 else f"in {text}"


def dead_letter_link(topic: str, partition: object, offset: object) -> str:
    """Return the address of a dead letter's page."""
    return f"/dead-letters/{quote(topic, safe='')}/{partition}/{offset}"


def job_link(job: str) -> str:
    """Return the address of a job's page."""
    return f"/jobs/{quote(job, safe='')}"


def group_link(group: str) -> str:
    """Return the address of the counts of a group's dead letters."""
    return address("/dead-letters", ("where", f"group={literal(group)}"))


def dead_letters_link(conditions: Iterable[str], since: str, by: str = "none") -> str:
    """Return the address of the dead letters that meet conditions; ``by`` names the fields to count them by."""
    return address("/dead-letters", *(("where", one) for one in conditions), ("since", since), ("by", by))


def _link(column: str, text: str, row: Mapping[str, Any]) -> str:
    if column in ("wait_id", "oldest_wait_id", "wait_expiration_uuid", "idempotency_key", "record"):
        return address("/records", ("find", text))
    if column == "job":
        return job_link(text)
    if column == "instance":
        return address("/questions/instance_in_flight", ("instance", text))
    if column in ("group", "consumer_group"):
        return group_link(text)
    if column == "next_place" and str(row["event"]).startswith("dead letter"):
        return dead_letter_link(*text.rsplit(":", 2))
    if column == "log_offset" and str(row.get("event")).startswith("dead letter"):
        return dead_letter_link(row["log_topic"], row["log_partition"], text)
    if column == "dead_letters" and {"reason", "error_class", "first_at"} <= row.keys():
        return _counted_link(row)
    if column == "place" and "bytes" in row:  # a row of the list of dead letters
        return dead_letter_link(*text.rsplit(":", 2))
    return ""


def _counted_link(row: Mapping[str, Any]) -> str:
    """Return the address of the dead letters that a row of `dead_letters_by_reason` counts."""
    fields = {"error": "error_class", "group": "consumer_group", "topic": "original_topic"}
    known = {field: row[column] for field, column in fields.items() if row[column] is not None}
    known["reason"] = row["reason"] or "foreign"
    conditions = [f"{field}={literal(value)}" for field, value in known.items()]
    return dead_letters_link(conditions, row["first_at"].isoformat())


def _kind(value: object, text: str) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number"
    return "long" if len(text) > _ONE_LINE and " " in text else ""


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
