"""Reads a run's history once it is over, with clients that belong to no service."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from tests.chaos.history.entries import Republished, WaitEntry
from tests.chaos.history.history import FaultDone, History, Limits, Told
from tests.chaos.history.look import Look, Partition, read_looks
from tests.chaos.history.record import UNREADABLE_HEADERS, RawRecord, content_of, input_bytes, registered_bytes
from tests.chaos.history.republished_records import republished
from tests.chaos.history.rows import View
from tests.chaos.history.tables import read_tables
from tests.chaos.history.topics import ANSWER_S, committed_of, partitions_of, read_topic, reader, wait_settled
from tests.chaos.history.wait_entries import wait_entry
from tests.chaos.history.where import Where
from wait_registry.demo.calls import read_calls
from wait_registry.demo.fingerprint import Fingerprint
from wait_registry.demo.manifest import Coordinates, Published, read_manifest

__all__ = ["Where", "read_history"]


@dataclass(frozen=True, slots=True)
class Inputs:
    """What was published, and what the input topics hold of it; fields as in `History`."""

    published: list[Published] = field(default_factory=list)
    registered_bytes: dict[Coordinates, int] = field(default_factory=dict)
    input_bytes: dict[Coordinates, int] = field(default_factory=dict)
    timestamp_types: dict[Coordinates, str] = field(default_factory=dict)


def read_history(
    where: Where,
    *,
    faults: Sequence[FaultDone],
    limits: Limits,
    told: Told | None = None,
    views: Sequence[View] | None = None,
    look_at_view: bool = True,
) -> History:
    """Read everything; the services have ended, or nothing moves any more.

    Args:
        where: the evidence.
        faults: what was done to the run.
        limits: its bounds, with the samples taken.
        told: the settings that its rules go by; without, those rules judge nothing.
        views: what the tables were like meanwhile, if somebody looked.
        look_at_view: read Postgres too; sensible once the sink has come to the log's ends.

    Raises:
        KafkaException, psycopg.Error: a server doesn't answer.
        OpenTransactionError: a transaction stays open.
        DataError: a file is something else.
    """
    calls = None if where.calls is None else list(read_calls(where.calls))
    committed, cluster_id = _committed(where)
    tables = read_tables(where.postgres_url, where.schema) if look_at_view else None
    ends = wait_settled(where.bootstrap, [where.wait_topic, *where.letter_topics, *where.redelivery_topics])
    inputs = _inputs(where)
    return History(
        group=where.group,
        cluster_id=cluster_id,
        wait_topic=where.wait_topic,
        published=inputs.published,
        calls=calls,
        looks=_looks(where),
        wait_log=_wait_log(where),
        dead_letters=_republished(where, where.letter_topics),
        redelivered=_republished(where, where.redelivery_topics),
        committed_at_end=committed,
        ends=ends,
        wait_rows=None if tables is None else tables.wait,
        dead_letter_rows=None if tables is None else tables.dead_letter,
        quarantine_rows=None if tables is None else tables.quarantine,
        progress_rows=None if tables is None else tables.progress,
        faults=faults,
        limits=limits,
        told=told,
        views=views,
        registered_bytes=inputs.registered_bytes,
        input_bytes=inputs.input_bytes,
        timestamp_types=inputs.timestamp_types,
    )


def record_place(record: RawRecord) -> tuple[int, int]:
    """Return partition and offset."""
    return (record.partition, record.offset)


def with_input(listed: Iterable[Published], standing: Iterable[RawRecord]) -> list[Published]:
    """Return the generator's list, completed by what stands in the input topics and isn't in it.

    A generator that dies, or waits in vain for the broker's answer, leaves records that it doesn't know of; they are
    promised as much as the others. Where nobody can read a record's headers, their digest says so.
    """
    known = {record.coordinates: record for record in listed}
    for record in standing:
        place = (record.topic, record.partition, record.offset)
        if place not in known:
            known[place] = Published(*place, record.timestamp_ms, content_of(record))
        elif record.headers is None:
            digests = known[place].fingerprint
            known[place] = replace(
                known[place], fingerprint=Fingerprint(digests.key, digests.value, UNREADABLE_HEADERS)
            )
    return list(known.values())


def _inputs(where: Where) -> Inputs:
    inputs = Inputs()

    def standing() -> Iterator[RawRecord]:
        for topic in where.inputs:
            for record in read_topic(where.bootstrap, topic, "read_committed"):
                place = (record.topic, record.partition, record.offset)
                inputs.registered_bytes[place] = registered_bytes(record)
                inputs.input_bytes[place] = input_bytes(record)
                inputs.timestamp_types[place] = record.timestamp_type
                yield record

    inputs.published.extend(with_input(read_manifest(where.manifest), standing()))
    return inputs


def _looks(where: Where) -> Sequence[Look]:
    return list(read_looks(where.looks)) if where.looks.exists() else []


def _committed(where: Where) -> tuple[dict[Partition, int], str]:
    consumer = reader(where.bootstrap, "read_committed", where.group)
    try:
        consumed = (*where.inputs, *where.redelivery_topics)
        places = [(topic, number) for topic in consumed for number in partitions_of(consumer, topic)]
        cluster_id: str = consumer.list_topics(where.wait_topic, timeout=ANSWER_S).cluster_id
        return dict(committed_of(consumer, places)), cluster_id
    finally:
        consumer.close()


def _wait_log(where: Where) -> Sequence[WaitEntry]:
    stable = {record_place(record) for record in read_topic(where.bootstrap, where.wait_topic, "read_committed")}
    return [
        wait_entry(record, record_place(record) in stable)
        for record in read_topic(where.bootstrap, where.wait_topic, "read_uncommitted")
    ]


def _republished(where: Where, topics: Iterable[str]) -> Sequence[Republished]:
    found: list[Republished] = []
    for topic in topics:
        stable = {record_place(record) for record in read_topic(where.bootstrap, topic, "read_committed")}
        found += [
            republished(record, record_place(record) in stable)
            for record in read_topic(where.bootstrap, topic, "read_uncommitted")
        ]
    return found
