"""Writes a batch of the operations topic into Postgres: jobs, marks, and the state of the dead letters they are of."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from operator import itemgetter
from typing import Any, Final, NamedTuple

import pyarrow as pa
from psycopg.types.json import Jsonb

from sink.apply.staging import insert_quarantined
from sink.condense.quarantined import Quarantined, quarantined
from sink.position import TopicPartition, clamped, moment
from sink.progress import QUERIES, Connection, Written
from sink.read.record_columns import OFFSET, TIME_MS, VALUE, records_of
from wait_registry.errors import DataError
from wait_registry.records.operation import (
    Advanced,
    Approved,
    Changed,
    DeletionRequested,
    Event,
    Mark,
    RateChanged,
    RecordsDeleted,
    Requested,
    Revealed,
    decode_event,
)

_NOWHERE: Final = (None, None, None)


class Stored(NamedTuple):
    """Counts of one batch, and the wait IDs of its marks."""

    events: int
    unreadable: int
    wait_ids: list[str]


class OperationWriter:
    """The operations topic's side of the sink; the topic has one partition, and its order counts."""

    def write(self, connection: Connection, batch: pa.Table, whole_from: dict[TopicPartition, int]) -> Written:
        """Write within the caller's transaction; errors are psycopg's, and bad records raise nothing."""
        stored = self.store(connection, batch)
        if stored.wait_ids:
            self._mark(connection, stored.wait_ids)
        return Written("operations", stored.events, 0, stored.unreadable, 0)

    def store(self, connection: Connection, batch: pa.Table) -> Stored:
        """Write jobs and marks, not yet the states of dead letters; otherwise as `write`."""
        unreadable: list[Quarantined] = []
        marks: list[tuple[Any, ...]] = []
        jobs = 0
        for record in sorted(records_of(batch), key=itemgetter(OFFSET)):
            try:
                event = decode_event(record[VALUE])
            except DataError as error:
                unreadable.append(quarantined(record, str(error)))
                continue
            at = moment(clamped(record[TIME_MS]))
            if isinstance(event, Mark):
                marks.append(_mark(event, record[OFFSET], at))
            else:
                for query, values in _statements(event, record[OFFSET], at):
                    connection.execute(QUERIES[query], values)
                jobs += 1
        insert_quarantined(connection, unreadable)
        with connection.cursor() as cursor:
            cursor.executemany(QUERIES["insert_mark"], marks)
        return Stored(len(marks) + jobs, len(unreadable), sorted({mark[4] for mark in marks}))

    def _mark(self, connection: Connection, wait_ids: list[str]) -> None:
        # The transaction that has the lock sees the dead letters, or the marks, that came at the same time.
        connection.execute(QUERIES["lock_marking"])
        connection.execute(QUERIES["show_marks"], {"wait_ids": wait_ids})


def show_marks_of_others(connection: Connection) -> None:
    """Give dead letters that another sink inserted after their marks the states that the marks say."""
    with connection.transaction():
        connection.execute(QUERIES["lock_marking"])
        connection.execute(QUERIES["prefer_probes"])
        connection.execute(QUERIES["show_marks_of_others"])


def _mark(mark: Mark, offset: int, at: datetime) -> tuple[Any, ...]:
    return (
        offset,
        mark.job,
        mark.kind.value,
        mark.kind.state,
        mark.wait_id,
        mark.number,
        mark.group,
        *(mark.record or _NOWHERE),
        mark.record_time_ms,
        *(mark.target or _NOWHERE),
        mark.next_wait_id,
        mark.delivery,
        mark.edited,
        [str(place) for place in mark.dead_letters],
        at,
        mark.by,
    )


def _statements(event: Event, offset: int, at: datetime) -> Iterator[tuple[str, Any]]:
    """Yield the queries with the values for an event that is no mark."""
    match event:
        case Requested():
            values = event.model_dump(mode="json", exclude={"event", "version", "conditions", "allowed"})
            lists = {"conditions": list(event.conditions), "allowed": list(event.allowed)}
            numbers = {"ends": Jsonb(values["ends"]), "expected": Jsonb(values["expected"])}
            edit = {"replacement": values["replacement"] and Jsonb(values["replacement"])}
            yield "begin_operation", {**values, **lists, **numbers, **edit, "at": at}
        case Advanced():
            come = {"cursor": Jsonb(list(event.cursor)), "counts": Jsonb(event.counts)}
            yield "advance_operation", {"job": event.job, **come, "at": at}
        case Changed():
            values = {"job": event.job, "state": event.state.value, "by": event.by, "reason": event.reason}
            yield "change_operation", {**values, "offset": offset, "at": at}
            yield "insert_operator_event", _event(event, offset, at, event.reason)
        case Approved():
            yield "approve_operation", {"job": event.job, "by": event.by, "reason": event.reason, "at": at}
            yield "insert_operator_event", _event(event, offset, at, event.reason)
        case RateChanged():
            yield "change_rate", {"job": event.job, "rate": event.rate}
            detail = ": ".join(filter(None, (f"{event.rate:g} per second", event.reason)))
            yield "insert_operator_event", _event(event, offset, at, detail)
        case Revealed():
            yield "insert_operator_event", _event(event, offset, at, event.reason)
        case DeletionRequested():
            cuts = [f"partition {partition} before {end}" for partition, end in sorted(event.before.items())]
            detail = f"{event.topic}: {', '.join(cuts)}: {event.reason}"
            yield "insert_operator_event", _event(event, offset, at, detail)
        case RecordsDeleted():
            begins = [f"partition {partition} begins at {first}" for partition, first in sorted(event.first.items())]
            failures = [f"partition {partition} failed: {why}" for partition, why in sorted(event.failed.items())]
            yield "insert_operator_event", _event(event, offset, at, f"{event.topic}: {', '.join(begins + failures)}")


def _event(
    event: Changed | Approved | RateChanged | DeletionRequested | RecordsDeleted | Revealed,
    offset: int,
    at: datetime,
    detail: str,
) -> tuple[Any, ...]:
    job, group, place = (None, event.group, event.place) if isinstance(event, Revealed) else (event.job, None, _NOWHERE)
    what = event.state.value if isinstance(event, Changed) else event.event
    return (offset, what, job, group, at, event.by, event.authenticated, detail, *place)
