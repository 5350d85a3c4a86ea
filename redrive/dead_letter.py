"""One dead letter with everything that its row has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from redrive.difference import Content
from wait_registry.errors import ConfigurationError
from wait_registry.records.headers import decode_headers_json

if TYPE_CHECKING:
    import psycopg

Connection: TypeAlias = "psycopg.Connection[Any]"
_COLUMNS: Final = (
    "dead_letter_time", "reason", "error_class", "error_message", "error_stacktrace", "consumer_group", "instance",
    "delivery", "wait_expiration_uuid", "idempotency_key", "original_topic", "original_partition", "original_offset",
    "original_timestamp", "source_topic", "source_partition", "source_offset", "finished_late", "finished_outcome",
    "finished_time",
)  # fmt: skip
_ROW: Final = f"""
select topic, partition, "offset", key, headers::text, body, {", ".join(_COLUMNS)}
from dead_letter
where {{}}
order by dead_letter_time desc, topic, partition, "offset"
"""


class Place(NamedTuple):
    """Topic, partition and offset of a record."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        """Return it as it is typed: ``orders.dlq:0:17``."""
        return f"{self.topic}:{self.partition}:{self.offset}"


class DeadLetter(NamedTuple):
    """A dead letter: its place, the original record, and the other columns of its row by name."""

    place: Place
    content: Content
    row: Mapping[str, Any]

    def record(self) -> Place | None:
        """Return the place of the record in its input topic, if the dead letter names it."""
        place = (self.row["original_topic"], self.row["original_partition"], self.row["original_offset"])
        return None if None in place else Place(*place)

    def may_be_done(self) -> str:
        """Return whether the work may have been done, in a sentence."""
        if self.row["finished_late"]:
            at = self.row["finished_time"]
            return f"Yes: after its deadline it ended as {self.row['finished_outcome'] or 'done'}, at {at}."
        if self.row["reason"] == "expired":
            return "Perhaps: the process that had it gave no outcome. Ask the called service by the idempotency key."
        if self.row["reason"] in ("failed", "blocked"):
            return "Probably not: the handler failed. A call that timed out may have arrived all the same."
        if self.row["reason"] is None:
            return "Unknown: no processor of this project wrote it."
        return "No: the handler wasn't called."


def parse_place(text: str) -> Place:
    """Read ``topic:partition:offset``.

    Raises:
        ConfigurationError: it is something else.
    """
    match = re.fullmatch(r"([a-zA-Z0-9._-]{1,249}):([0-9]{1,9}):([0-9]{1,18})", text)
    if match is None:
        raise ConfigurationError(f"{text!r} is no place of a record, e.g. orders.dlq:0:17")
    return Place(match[1], int(match[2]), int(match[3]))


def find(connection: Connection, which: str) -> list[DeadLetter]:
    """Return the dead letter at a place, or those of a wait ID: usually one, the newest first.

    Raises:
        ConfigurationError: the tables have none.
    """
    if ":" in which:
        letters = _find(connection, 'topic = %s and partition = %s and "offset" = %s', *parse_place(which))
    else:
        letters = _find(connection, "wait_expiration_uuid = %s", which.strip().lower())
    if not letters:
        raise ConfigurationError(
            f"the tables have no dead letter {which!r}: `waitreg dlq list since=30d` lists them with their places"
        )
    return letters


def _find(connection: Connection, where: str, *parameters: object) -> list[DeadLetter]:
    letters = []
    for *place, key, headers, body, in_order in (
        (*row[:6], row[6:]) for row in connection.execute(_ROW.format(where).encode(), parameters)
    ):
        content = Content(key, decode_headers_json((headers or "[]").encode()), body)
        letters.append(DeadLetter(Place(*place), content, dict(zip(_COLUMNS, in_order, strict=True))))
    return letters
