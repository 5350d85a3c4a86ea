"""Reads a run's history once it is over, with clients that belong to no service."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from tests.chaos.history.decoding import as_input, republished, wait_entry
from tests.chaos.history.entries import Republished
from tests.chaos.history.history import History, Input, Partition, Poll, topics_again
from tests.chaos.history.tables import read_tables
from tests.chaos.history.watch import ANSWER_S, Tap, bounds_of, committed_of, partitions_of, reader, wait_settled
from tests.support.kafka_io import ReadRecord, read_each
from wait_registry.errors import DataError
from wait_registry.records.operation import decode_event
from wait_registry.settings.processor import RedeliverTo
from wait_registry.settings.tree import Settings
from waitreg.downstream.calls import read_calls
from waitreg.load.manifest import Coordinates, Published, read_manifest

Decoded = TypeVar("Decoded")


def read_history(
    settings: Settings, folder: Path, polls: Sequence[Poll], tap: Tap | None = None, *, with_tables: bool = True
) -> History:
    """Read what the run has left; the services have ended, or nothing changes any more.

    Args:
        settings: with addresses behind no faulty link.
        folder: of the load's manifest and the downstream's calls.
        polls: of the watch.
        tap: has read the retry, redelivery and dead letter topics, if anything of them may be deleted.
        with_tables: whether to read the tables too.

    Raises:
        KafkaException, psycopg.Error: a server doesn't answer.
        OpenTransactionError: a transaction stays open.
        DataError: a file is something else, or a published record is missing.
    """
    bootstrap, wait, letters = settings.kafka.bootstrap_servers, settings.wait.topic, settings.dead_letter.topic
    operations = settings.operations.topic
    calls, (committed, begins, cluster_id) = list(read_calls(folder / "calls.jsonl")), _committed(settings)
    tables, again = read_tables(settings) if with_tables else None, topics_again(settings)
    # The sink has a position in each topic that it reads: the operations topic too.
    ends = wait_settled(bootstrap, [wait, letters, operations, *again])
    published = [one for topic in settings.processor.topics for one in read_each(bootstrap, topic, "read_committed")]
    tapped = [] if tap is None else [republished(one, True) for one in tap.read_to(_of([letters, *again], ends))]
    to_origin = {} if settings.processor.redeliver_to is RedeliverTo.GROUP else _redelivered(published, settings)
    left = _decoded(bootstrap, [letters], republished)
    kept = {one.place for one in left}
    return History(
        settings=settings,
        cluster_id=cluster_id,
        inputs=with_manifest(
            read_manifest(folder / "manifest.jsonl"), [one for one in published if one.place not in to_origin]
        ),
        calls=calls,
        polls=polls,
        wait_log=_decoded(bootstrap, [wait], wait_entry),
        dead_letters=[*(one for one in tapped if one.topic == letters and one.place not in kept), *left],
        redelivered=[*(one for one in tapped if one.topic != letters), *to_origin.values()],
        committed_at_end=committed,
        ends=ends,
        tables=tables,
        operations=[decode_event(one.value) for one in read_each(bootstrap, operations, "read_committed")],
        begins=begins,
    )


def _of(topics: Sequence[str], ends: Mapping[Partition, int]) -> Mapping[Partition, int]:
    return {place: end for place, end in ends.items() if place[0] in topics}


def _redelivered(published: Iterable[ReadRecord], settings: Settings) -> Mapping[Coordinates, Republished]:
    """Return the records of input topics whose lineage counts for the group."""
    found = (republished(one, True) for one in published)
    group = settings.processor.group
    return {one.place: one for one in found if isinstance(one, Republished) and one.group == group and not one.reason}


def with_manifest(listed: Iterable[Published], records: Iterable[ReadRecord]) -> list[Input]:
    """Return the records of the input topics, with the content that the load generator has listed.

    A load generator that dies, or waits in vain for the broker's answer, leaves records that it hasn't listed. The
    guarantees cover them too. If a record's headers can't be read, its digest says so.
    """
    known = {record.coordinates: record for record in listed}
    found = []
    for record in records:
        one, published = as_input(record), known.pop(record.place, None)
        if published is not None:
            content = published.fingerprint if record.is_readable else one.content
            one = replace(one, timestamp_ms=published.timestamp_ms, content=content)
        found.append(one)
    if known:
        raise DataError(f"{len(known)} published records are missing from the input topics, {min(known)} is the first")
    return found


def _committed(settings: Settings) -> tuple[dict[Partition, int], dict[Partition, int], str]:
    """Return the group's offsets, the first offsets of what may be deleted, and the ID of the cluster."""
    consumer = reader(settings.kafka.bootstrap_servers, "read_committed", settings.processor.group)
    try:
        consumed = (*settings.processor.topics, *topics_again(settings))
        places = [(topic, number) for topic in consumed for number in partitions_of(consumer, topic)]
        cluster_id: str = consumer.list_topics(settings.wait.topic, timeout=ANSWER_S).cluster_id
        committed = dict(committed_of(consumer, places))
        places += [
            (settings.dead_letter.topic, number) for number in partitions_of(consumer, settings.dead_letter.topic)
        ]
        return committed, {place: bounds_of(consumer, place)[0] for place in places}, cluster_id
    finally:
        consumer.close()


def _decoded(bootstrap: str, topics: Iterable[str], decode: Callable[[ReadRecord, bool], Decoded]) -> list[Decoded]:
    """Return every record of some topics, aborted ones too, with whether it is committed."""
    found: list[Decoded] = []
    for topic in topics:
        stable = {record.place for record in read_each(bootstrap, topic, "read_committed")}
        everything = read_each(bootstrap, topic, "read_uncommitted")
        found += [decode(record, record.place in stable) for record in everything]
    return found
