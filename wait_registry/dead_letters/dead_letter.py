"""One dead letter with everything that its row has."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from wait_registry.dead_letters.difference import Content
from wait_registry.dead_letters.outcome import Outcome
from wait_registry.display import safe
from wait_registry.errors import ConfigurationError
from wait_registry.postgres.queries import Queries
from wait_registry.records.headers import decode_headers_json
from wait_registry.records.operation import Place
from wait_registry.records.times import MAX_TIME_MS, MIN_TIME_MS
from wait_registry.records.topics import is_kept_topic_name

if TYPE_CHECKING:
    import psycopg


class Reader(Protocol):
    """What queries are sent to: a connection, or what shows only some rows of one."""

    def execute(self, query: bytes, params: Sequence[object] | Mapping[str, object]) -> psycopg.Cursor[Any]:
        """Return the result of a query."""


_QUERIES: Final = Queries("dead_letters")
# What is known of a dead letter besides the contents of its record.
FACTS: Final = (
    "state", "state_by", "state_at", "job", "job_reason", "reason", "dead_letter_time", "consumer_group", "instance",
    "delivery", "wait_expiration_uuid", "idempotency_key", "original_timestamp", "error_class", "error_message",
)  # fmt: skip
# Units that producers take for ms, and how many of one are a second; times of the years 2000 to 2099.
_UNITS: Final = (("s", 1), ("µs", 1_000_000), ("ns", 1_000_000_000))
_TODAY_S: Final = range(946_684_800, 4_102_444_800)


class Redriven(NamedTuple):
    """The redrive of a delivery: its job, who asked for it, when it was sent, and what became of the record."""

    job: str
    by: str
    at: datetime
    outcome: Outcome

    def is_done(self) -> str:
        """Return whether the work is done since then, in a sentence."""
        redrive = f"it was redriven at {self.at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC by {safe(self.by)}"
        return _SINCE[self.outcome].format(redrive)


_SINCE: Final[Mapping[Outcome, str]] = {
    Outcome.NOT_CONSUMED: "Not by the redrive yet: {}, and its group hasn't consumed it.",
    Outcome.WAITING: "Not yet: {}, and its next delivery isn't finished.",
    Outcome.DEAD_AGAIN: "Not by the redrive: {}, and it is a dead letter again. Its deliveries below lead there.",
    Outcome.SETTLED: "Yes, or it was discarded or is in a retry topic: {}, and nothing of it failed since then.",
    Outcome.UNKNOWN: "Not known yet: {}, and the tables don't show what became of it.",
}


class DeadLetter(NamedTuple):
    """A dead letter: its place, the original record, and its row by column."""

    place: Place
    content: Content
    row: Mapping[str, Any]

    def record(self) -> Place:
        """Return the place of the record in its input topic.

        Raises:
            ConfigurationError: the dead letter doesn't name it.
        """
        place = self._named("original")
        if place is None:
            raise ConfigurationError(f"{self.place} doesn't name the record that it was made of")
        return place

    def places(self) -> dict[str, Place]:
        """Return where the record is in its input topic, and where this delivery of it was consumed, if named."""
        named = {"record": self._named("original"), "consumed at": self._named("source")}
        return {name: place for name, place in named.items() if place is not None}

    def produced(self) -> datetime | str | None:
        """Return the time that the producer gave the record; a text if its unit looks wrong, None if there is none."""
        return _no_ms(self.row["original_timestamp_ms"]) or self.row["original_timestamp"]

    def _named(self, kind: str) -> Place | None:
        place = (self.row[f"{kind}_topic"], self.row[f"{kind}_partition"], self.row[f"{kind}_offset"])
        return None if None in place else Place(*place)

    def may_be_done(self, redriven: Redriven | None = None) -> str:
        """Return whether the work may have been done, in a sentence.

        Args:
            redriven: the last redrive of this delivery, if there was one.
        """
        if redriven is not None:
            return redriven.is_done()
        if self.row["finished_late"]:
            at = self.row["finished_time"]
            return f"Yes: after its deadline it ended as {self.row['finished_outcome'] or 'done'}, at {at}."
        if self.row["reason"] == "expired" and self.row["finished_outcome"] is not None:
            late = "A call that timed out may have arrived all the same."
            return f"Probably not: it failed as well, at {self.row['finished_time']}. {late}"
        if self.row["reason"] == "expired":
            return "Perhaps: the process that had it gave no outcome. Ask the called service by the idempotency key."
        if self.row["reason"] in ("failed", "blocked"):
            return "Probably not: the handler failed. A call that timed out may have arrived all the same."
        if self.row["reason"] is None:
            return "Unknown: no processor of this project wrote it."
        return "No: the handler wasn't called."


def _no_ms(timestamp_ms: int | None) -> str:
    """Return in which other unit a timestamp looks like a time of today; "" if ms since 1970 may be right, or none."""
    if timestamp_ms is None or timestamp_ms == -1:
        return ""
    for unit, per_s in _UNITS:
        if (time_s := timestamp_ms // per_s) in _TODAY_S:
            at = datetime.fromtimestamp(time_s, UTC)
            return f"{timestamp_ms}, which looks like {unit} ({at:%Y-%m-%d %H:%M:%S} UTC): the producer must give ms"
    if MIN_TIME_MS <= timestamp_ms <= MAX_TIME_MS:
        return ""
    return f"{timestamp_ms}, which is no date in ms since 1970: the producer must give ms"


def parse_place(text: str) -> Place:
    """Read ``topic:partition:offset``.

    Raises:
        ConfigurationError: it is something else.
    """
    place = place_in(text)
    if place is None:
        raise ConfigurationError(f"{text!r} is no place of a record, e.g. orders.dlq:0:17")
    return place


def place_in(text: str) -> Place | None:
    """Return the place that a text is, ``topic:partition:offset``; None if it is something else.

    The topic may be a deleted one, as the tables name it: ``topic@ID``.
    """
    match = re.fullmatch(r"(.+):([0-9]{1,9}):([0-9]{1,18})", text)
    if match is None or not is_kept_topic_name(match[1]):
        return None
    return Place(match[1], int(match[2]), int(match[3]))


def find(reader: Reader, which: str) -> list[DeadLetter]:
    """Return the dead letter at a place, or those of a wait ID: usually one, the newest first.

    Raises:
        ConfigurationError: the tables have none.
    """
    by_wait_id = "wait_expiration_uuid = %s", which.strip().lower()
    found = find_at(reader, parse_place(which)) if ":" in which else _find(reader, *by_wait_id)
    if not found:
        raise ConfigurationError(
            f"the tables have no dead letter {which!r}: `waitreg dlq list since=30d` lists them with their places"
        )
    return found


def find_at(reader: Reader, place: Place) -> list[DeadLetter]:
    """Return the dead letter at a place; none if the tables have none there."""
    return _find(reader, 'topic = %s and partition = %s and "offset" = %s', *place)


def _find(reader: Reader, where: str, *parameters: object) -> list[DeadLetter]:
    found = reader.execute(_QUERIES["rows"].replace("{where}", where).encode(), parameters)
    names = [column.name for column in found.description or ()]
    return [_dead_letter(dict(zip(names, row, strict=True))) for row in found]


def _dead_letter(row: Mapping[str, Any]) -> DeadLetter:
    headers = decode_headers_json((row["headers_json"] or "[]").encode())
    place = Place(row["topic"], row["partition"], row["offset"])
    return DeadLetter(place, Content(row["key"], headers, row["body"]), row)
