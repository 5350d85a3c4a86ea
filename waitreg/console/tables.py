"""The tables as one person may see them: read-only, with a time limit, without what is not theirs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import sql

from wait_registry.dead_letters.dead_letter import DeadLetter
from wait_registry.dead_letters.filter import Filter
from wait_registry.dead_letters.listing import Rows
from wait_registry.errors import ConfigurationError
from wait_registry.postgres.connection import PostgresRefused, connect_pooled
from wait_registry.postgres.query_file import QueryFile, bind
from wait_registry.postgres.schema import require_schema
from wait_registry.schemas.registry import SchemaRegistry, for_display
from wait_registry.settings.tree import Settings
from waitreg.console.access.grants import ALL, Person, Right, condition, role_with
from waitreg.console.access.masks import HIDDEN, Masks, masked, parse_masks
from waitreg.console.access.permission import group_and_topic
from waitreg.console.refusals import NotAllowed
from waitreg.read_tables import age
from waitreg.tables_age import CachedLine, connect_line

# A page shows no more rows of a question.
ROWS: Final = 200
# Columns of questions that show what records contain, or what handlers said of it.
CONTENT: Final = frozenset(
    ("key", "latest_key", "body", "message", "error_message", "latest_message", "error_stacktrace")
)
# Events of a record whose detail our services write, such as its expiry. The detail of all others may quote an error.
_OUR_EVENTS: Final = ("waiting", "late tombstone", "redriven", "archived", "restored")
# Fields of conditions that would show it to those who try values.
CONTENT_FIELDS: Final = frozenset({"key", "message"})
_CONTENT_CONDITION: Final = re.compile(rf"\b({'|'.join(sorted(CONTENT_FIELDS))})(=|!=|~)")
# Tables and views with a row per record, and those that show more than one person's records.
_OF_RECORDS: Final = (
    "wait", "wait_readable", "dead_letter", "dead_letter_readable", "dead_letter_mark", "record_event",
)  # fmt: skip
_OF_ALL: Final = ("quarantine", "sweep", "late_outcome")
_QUARANTINED: Final = "quarantined"
_FOR_EVERYBODY: Final = "sink_freshness"


class Answer(NamedTuple):
    """A question with the values that it was asked with, and the answer.

    ``more`` if it has more rows than `ROWS`; ``problem`` says why it has none, if it couldn't be asked.
    """

    question: QueryFile
    given: Mapping[str, str]
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    more: bool
    problem: str = ""


@dataclass(frozen=True)
class Tables:
    """What pages of one person read from, the line that says how old it is, and the settings of the console."""

    connection: psycopg.Connection[Any]
    age: str
    person: Person
    masks: Masks
    registry: SchemaRegistry | None
    settings: Settings

    def execute(self, query: bytes, params: Mapping[str, object] | Sequence[object]) -> psycopg.Cursor[Any]:
        """Send a query, which begins with ``select``, to the rows that the person may see."""
        return self.connection.execute(self._rows + query, params)

    def may_ask(self, question: QueryFile) -> bool:
        """Return whether the person may have the answer: some questions are about all groups, one about contents."""
        if question.name == _QUARANTINED:
            return self.person.sees_all() and self.shows_all_contents
        return self.person.sees_all() or question.kind != "the system" or question.name == _FOR_EVERYBODY

    def ask(self, question: QueryFile, given: Mapping[str, str]) -> Answer:
        """Ask one of the questions in sql/queries.

        Raises:
            ConfigurationError: a parameter is unknown, or has neither a value nor a default.
            NotAllowed: the question, or a value, is about more than the person may see.
            psycopg.DataError: Postgres can't read a value.
        """
        if not self.may_ask(question):
            raise NotAllowed("This question is about the records of all groups, and you may not see all of them.")
        self.require_content([name for name, value in given.items() if value], Filter(()))
        values = bind(question, given)
        text = f"select * from (\n{question.sql.rstrip().rstrip(';')}\n) as asked limit {ROWS + 1}"
        cursor = self.execute(text.encode(), values)
        columns = [column.name for column in cursor.description or ()]
        rows = cursor.fetchall()
        if not self.shows_all_contents:
            rows = [_without_contents(columns, row) for row in rows]
        return Answer(question, values, columns, rows[:ROWS], len(rows) > ROWS)

    def without_contents(self, found: Rows) -> Rows:
        """Return rows without what would show the contents of records, if anything of these is hidden."""
        if self.shows_all_contents:
            return found
        return found._replace(rows=[_without_contents(found.columns, row) for row in found.rows])

    def ask_within(self, question: QueryFile) -> Answer:
        """Ask a question with its defaults, as one of several: if it takes too long, the others are still answered."""
        try:
            with self.connection.transaction():
                return self.ask(question, {})
        except psycopg.errors.QueryCanceled:
            problem = "This took too long. Open the question by itself, and ask for less: a shorter time, one group."
            return Answer(question, {}, (), (), False, problem)

    def release(self) -> None:
        """End the transaction, so that the connection isn't idle in one while something else is waited for."""
        self.connection.rollback()

    @property
    def shows_all_contents(self) -> bool:
        """Whether nothing is hidden of the records whose rows the person may see."""
        return self.person.inspects_all() and not self.masks.masks

    def hides_one_of(self, fields: Iterable[str], chosen: Filter) -> bool:
        """Return whether one of these fields, of dead letters that a filter means, may be hidden from the person."""
        return not CONTENT_FIELDS.isdisjoint(fields) and not self._shows_contents_of(chosen)

    def require_content(self, fields: Collection[str], chosen: Filter) -> None:
        """Refuse fields that would find what is hidden.

        Args:
            fields: what is to be found or counted by.
            chosen: the conditions for this.

        Raises:
            NotAllowed: one of these fields may be hidden.
        """
        if self.hides_one_of(fields, chosen):
            hidden = min(CONTENT_FIELDS.intersection(fields))
            remedy = (
                "Dead letters can be, with the condition topic=TOPIC, if nothing is hidden of this input topic."
                if self.person.pairs(Right.INSPECT)
                else f"That needs the role {role_with([Right.INSPECT])}."
            )
            raise NotAllowed(f"Something of records is hidden from you, so they can't be found by {hidden}. {remedy}")

    def _shows_contents_of(self, chosen: Filter) -> bool:
        """Return whether nothing is hidden of the records that a filter means."""
        groups: Sequence[str | None] = chosen.exact_values("group") or (None,)
        topics = chosen.exact_values("topic")
        named = bool(topics) and not any(self.hides(group, topic) for group in groups for topic in topics)
        return self.shows_all_contents or named

    def hides(self, group: str | None, topic: str | None) -> bool:
        """Return whether anything is hidden of what a record of this group and topic contains."""
        return not self.person.may(Right.INSPECT, group, topic) or bool(self.masks.of(topic))

    def hides_part_of(self, dead_letter: DeadLetter) -> bool:
        """Return whether anything is hidden of what a dead letter contains."""
        return self.hides(*group_and_topic(dead_letter))

    def seen(self, dead_letter: DeadLetter) -> DeadLetter:
        """Return what the person may see of a dead letter."""
        group, topic = group_and_topic(dead_letter)
        if not self.hides(group, topic):
            return dead_letter
        parts = self.masks.of(topic)
        if not self.person.may(Right.INSPECT, group, topic):
            parts = ["key", "value", *(f"header:{name}" for name, _ in dead_letter.content.headers)]
        row = dict(dead_letter.row)
        for name in ("error_message", "error_stacktrace"):
            row[name] = None if row[name] is None else HIDDEN
        return dead_letter._replace(content=masked(dead_letter.content, parts), row=row)

    def may_inspect(self, dead_letter: DeadLetter) -> bool:
        """Return whether the person may see what a dead letter contains, if perhaps not all of it."""
        return self.person.may(Right.INSPECT, *group_and_topic(dead_letter))

    def may_export(self, dead_letter: DeadLetter) -> bool:
        """Return whether the person may download a value: they have the right, and nothing of it is hidden."""
        group, topic = group_and_topic(dead_letter)
        return self.person.may(Right.EXPORT, group, topic) and not self.hides(group, topic)

    def require_export(self, dead_letter: DeadLetter) -> None:
        """Refuse what a person may not download.

        Raises:
            NotAllowed: the person may not.
        """
        if not self.may_export(dead_letter):
            raise NotAllowed("You may not download this: it needs the role operator, and nothing of it may be hidden.")

    @property
    def _jobs(self) -> sql.Composable:
        """Which jobs the person may see: those of groups that they see whole, and their own; as `may_follow` has it."""
        whole = condition([pair for pair in self.person.pairs(Right.VIEW) if pair[1] == ALL])
        own = sql.SQL("authenticated and via = 'console' and requested_by = {}").format(sql.Literal(self.person.name))
        return sql.SQL("({}) or ({})").format(whole, own)

    @cached_property
    def _rows(self) -> bytes:
        """What makes the names of tables mean the rows that the person may see."""
        pieces: dict[str, str] = {}
        if not self.shows_all_contents:
            # Of a record that can't be read, its key is shown in place of a wait ID.
            pieces = {"quarantine": "false", "record_event": "event <> 'quarantined'"}
        if not self.person.sees_all():
            where = condition(self.person.pairs(Right.VIEW)).as_string(self.connection)
            pieces = dict.fromkeys(_OF_RECORDS, where) | dict.fromkeys(_OF_ALL, "false")
            pieces["operation"] = self._jobs.as_string(self.connection)
            # What was done with these jobs; not who was shown what is hidden, which is about single records.
            pieces["operator_event"] = "job in (select job from operation)"
        if not pieces:
            return b""
        tables = [f"{name} as not materialized (select * from {name} where {piece})" for name, piece in pieces.items()]
        # A percent sign would begin a parameter.
        return f"with {', '.join(tables)}\n".replace("%", "%%").encode()


class TablesReader:
    """Opens the tables for one page.

    Args:
        settings: where Postgres is, how long it may take, and what is hidden from everybody.

    Raises:
        ConfigurationError: a mask can't be read.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._masks = parse_masks(settings.console.masks)
        self._registry = for_display(settings.processor.schema_registry)
        self._connect_line = CachedLine(connect_line)

    @contextmanager
    def open(self, person: Person) -> Iterator[Tables]:
        """Connect for a page of a person.

        Raises:
            WaitRegistryError: Postgres is away, refuses us, or has another schema.
            psycopg.Error: a question failed.
        """
        settings = self._settings
        with connect_pooled(
            settings.postgres,
            application_name="waitreg console",
            statement_timeout_s=settings.console.page_timeout_s,
        ) as connection:
            try:
                require_schema(connection)
            except ConfigurationError as error:
                raise PostgresRefused(str(error)) from error
            line = age(connection, settings, self._connect_line)
            yield Tables(connection, line, person, self._masks, self._registry, settings)


def _without_contents(columns: Sequence[str], row: Sequence[Any]) -> list[Any]:
    cells = dict(zip(columns, row, strict=True))
    hidden = {name for name, cell in cells.items() if cell is not None and _is_content(name, cells)}
    return [HIDDEN if name in hidden else cell for name, cell in zip(columns, row, strict=True)]


def _is_content(name: str, cells: Mapping[str, Any]) -> bool:
    """Return whether a cell of a row shows what a record contains, or what a handler said of it."""
    if name == "conditions":
        return _CONTENT_CONDITION.search(cells[name]) is not None
    if name == "detail":
        return not str(cells.get("event")).startswith(_OUR_EVENTS)
    return name in CONTENT
