"""The tables as one snapshot of Postgres: the sink's position, a job, and its dead letters."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from psycopg import IsolationLevel

from wait_registry.dead_letters.filter import Filter
from wait_registry.dead_letters.listing import ask
from wait_registry.errors import ConfigurationError
from wait_registry.postgres.connection import connect_pooled
from wait_registry.postgres.queries import Queries
from wait_registry.postgres.schema import require_schema
from wait_registry.records.operation import Place
from wait_registry.records.topics import kept_topic_name
from wait_registry.settings.tree import Settings
from waitreg.redrive.job_decision import Candidate, Contents, Standing, Twin
from waitreg.redrive.job_listing import find_row
from waitreg.redrive.progress import Progress

QUERIES: Final = Queries("redrive")
# How many candidates are read at a time.
_ROWS: Final = 2_000

Cursor = tuple[str | int, ...]
Ends = Mapping[str, Mapping[int, int]]


class TableSnapshot:
    """One repeatable-read, read-only transaction; `start` is the offset of the operations topic up to which it goes."""

    def __init__(self, settings: Settings) -> None:
        """Open the snapshot.

        Raises:
            ConfigurationError: no sink has read the operations topic into this schema, or it reads another one now.
            PostgresUnavailable, psycopg.Error: Postgres is unavailable; retry.
        """
        repeatable, name = IsolationLevel.REPEATABLE_READ, "waitreg redrive"
        self._connection = connect_pooled(
            settings.postgres, application_name=name, isolation=repeatable, statement_timeout_s=0
        )
        try:
            require_schema(self._connection)
            topic = settings.operations.topic
            row = self._connection.execute(QUERIES["position"], {"topic": topic}).fetchone()
            if row is None:
                raise ConfigurationError(
                    f"the tables don't know the operations topic {topic}: start `waitreg sink`, or set operations.topic"
                )
            if row[3] is not None:
                raise ConfigurationError(
                    f"the operations topic {topic} was replaced by {row[3]}, so no sink would read what is written to "
                    f"it: set operations.topic to {row[3]}"
                )
            self.topic_id: str = row[0]
            self.start: int = row[1]
            self.as_of: datetime = row[2]
            topic_ids = self._connection.execute(QUERIES["topic_ids"]).fetchall()
            self._kept_names = {topic: kept_topic_name(topic, topic_id) for topic, topic_id in topic_ids}
        except BaseException:
            self._connection.close()
            raise

    def groups(self, chosen: Filter) -> list[str | None]:
        """Return the consumer groups of the dead letters that a filter means, three at most."""
        return [group for (group,) in ask(self._connection, *chosen.within(QUERIES["groups"])).rows]

    def ends(self, chosen: Filter) -> dict[str, dict[int, int]]:
        """Return the dead letter topics of a filter, with the offset after the last one that it means, by partition.

        The names are those that marks have, so a topic that is recreated meanwhile isn't meant.
        """
        found: dict[str, dict[int, int]] = {}
        for topic, partition, end in ask(self._connection, *chosen.within(QUERIES["ends"])).rows:
            found.setdefault(self.marked(Place(topic, partition, end)).topic, {})[partition] = end
        return found

    def marked(self, place: Place) -> Place:
        """Return the place of a dead letter as marks name it: with the ID of its topic, if the tables know that."""
        return Place(self._kept_names.get(place.topic, place.topic), place.partition, place.offset)

    def job(self, name: str) -> Progress | None:
        """Return how far a job has come, if the tables have it."""
        return find_row(self._connection, name)

    def candidates(self, chosen: Filter, ends: Ends, after: Cursor | None) -> Iterator[Candidate]:
        """Yield the dead letters of a selection in the order of their records.

        Args:
            chosen: which ones.
            ends: offsets in their topics before which they must be.
            after: the cursor of the last one that was judged.
        """
        text, parameters = chosen.within(QUERIES["candidates"].replace("{after}", _after(after)))
        shown = {kept: topic for topic, kept in self._kept_names.items()}
        places = [(shown.get(topic, topic), number, end) for topic, by in ends.items() for number, end in by.items()]
        bounds = [list(column) for column in zip(*places, strict=True)] if places else [[], [], []]
        with self._connection.cursor(name="candidates") as cursor:
            cursor.execute(text.encode(), [*bounds, *parameters, *(after or ())], binary=True)
            while rows := cursor.fetchmany(_ROWS):
                yield from map(self._candidate, rows)

    def _candidate(self, row: Sequence[Any]) -> Candidate:
        """Return what the columns of the query say, by their order: a selection may have millions."""
        topic, partition, offset, of_topic, of_partition, of_offset, has_record, *facts, twins = row
        reason, wait_id, group, late, failed, waiting, conflicting, size, delivery, time_ms, *standing = facts
        return Candidate(
            Place(topic, partition, offset),
            Place(self._kept_names.get(topic, topic), partition, offset),
            reason,
            wait_id,
            group,
            Place(of_topic, of_partition, of_offset) if has_record else None,
            late,
            failed,
            waiting,
            conflicting,
            size,
            (of_topic, of_partition, of_offset, topic, partition, offset),
            Standing(*standing),
            delivery,
            tuple([Twin(self.marked(Place(*twin[:3])), twin[3]) for twin in twins]) if twins else (),
            time_ms,
        )

    def contents(self, candidates: Sequence[Candidate]) -> dict[Place, Contents]:
        """Return what is sent of dead letters, by place."""
        places = [list(column) for column in zip(*(candidate.place for candidate in candidates), strict=True)]
        with self._connection.cursor(binary=True) as cursor:
            rows = cursor.execute(QUERIES["contents"], places).fetchall()
        return {Place(*row[:3]): Contents(*row[3:]) for row in rows}

    def reached(self, topic: str) -> tuple[str | None, dict[int, int]]:
        """Return the ID of a topic that the tables have read, None for no such topic, and the position by partition."""
        rows = self._connection.execute(QUERIES["reached"], {"topic": topic}).fetchall()
        return rows[0][2] if rows else None, {partition: position for partition, position, _ in rows}

    def has_dead_letters(self, topic: str) -> bool:
        """Return whether a topic has rows in the table of dead letters."""
        row = self._connection.execute(QUERIES["has_dead_letters"], {"topic": topic}).fetchone()
        assert row is not None  # a select without from has one row
        return bool(row[0])

    def perhaps_open(
        self, topic: str, partition: int, offsets: range, marked: Sequence[str]
    ) -> Generator[tuple[int, str | None, str]]:
        """Yield offset, wait ID and state of dead letters, in order: the open ones, and those that have later marks.

        Args:
            topic, partition, offsets: where they are.
            marked: wait IDs of deliveries that have marks after the snapshot.
        """
        return self._rows("perhaps_open", topic, partition, offsets, marked=marked)

    def offsets(self, topic: str, partition: int, offsets: range) -> Generator[int]:
        """Yield the offsets of a range that have rows in the table of dead letters, in order."""
        return (offset for (offset,) in self._rows("offsets_of_dead_letters", topic, partition, offsets))

    def _rows(self, query: str, topic: str, partition: int, offsets: range, **more: object) -> Generator[Any]:
        place = {"topic": topic, "partition": partition, "first": offsets.start, "before": offsets.stop}
        with self._connection.cursor(name=query) as cursor:
            cursor.itersize = 10_000
            cursor.execute(QUERIES[query], {**place, **more})
            yield from cursor

    def close(self) -> None:
        """End the snapshot."""
        self._connection.close()


def _after(cursor: Cursor | None) -> str:
    if cursor is None:
        return "true"
    return (
        "(coalesce(dead_letter.original_topic, ''), coalesce(dead_letter.original_partition, -1), "
        'coalesce(dead_letter.original_offset, -1), dead_letter.topic, dead_letter.partition, dead_letter."offset") '
        "> (%s, %s, %s, %s, %s, %s)"
    )
