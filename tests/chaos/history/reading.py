"""Reads a run's history once it is over, with clients that belong to no service."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tests.chaos.history.decoding import RawRecord, republished, wait_entry
from tests.chaos.history.history import FaultDone, History, Limits, Look, Partition, Told, View, redelivery_topics
from tests.chaos.history.tables import read_tables
from tests.chaos.history.topics import ANSWER_S, committed_of, partitions_of, read_topic, reader, wait_settled
from wait_registry.demo.calls import read_calls
from wait_registry.demo.manifest import Coordinates, Published, read_manifest
from wait_registry.settings.root import Settings

Decoded = TypeVar("Decoded")


@dataclass(frozen=True, slots=True)
class Where:
    """Addresses (not by way of faulty links), names and files of one run.

    ``calls`` is None when the handler isn't our downstream. Redelivery topics follow from inputs and group.
    """

    bootstrap: str
    postgres_url: str
    schema: str
    group: str
    inputs: Sequence[str]
    wait_topic: str
    letter_topics: Sequence[str]
    manifest: Path
    calls: Path | None

    @classmethod
    def of(cls, settings: Settings, folder: Path) -> Where:
        """Return where a run of these settings, which go by no link, leaves its evidence; its files lie in a folder."""
        return cls(
            bootstrap=settings.kafka.bootstrap_servers,
            postgres_url=settings.postgres.url.get_secret_value(),
            schema=settings.postgres.schema_name,
            group=settings.processor.group,
            inputs=settings.processor.topics,
            wait_topic=settings.wait.topic,
            letter_topics=[settings.dead_letter.topic],
            manifest=folder / "manifest.jsonl",
            calls=folder / "calls.jsonl",
        )

    @property
    def redelivery_topics(self) -> Sequence[str]:
        """Return the topics through which the group gets expired records again; they needn't be there."""
        return redelivery_topics(self.inputs, self.group)


@dataclass(frozen=True, slots=True)
class Inputs:
    """What was published, and what the input topics hold of it; fields as in `History`."""

    published: list[Published]
    registered_bytes: dict[Coordinates, int]
    input_bytes: dict[Coordinates, int]
    timestamp_types: dict[Coordinates, str]


def read_history(
    where: Where,
    looks: Sequence[Look],
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
        looks: what was seen of the cluster meanwhile.
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
        looks=looks,
        wait_log=_decoded(where, [where.wait_topic], wait_entry),
        dead_letters=_decoded(where, where.letter_topics, republished),
        redelivered=_decoded(where, where.redelivery_topics, republished),
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


def with_input(listed: Iterable[Published], standing: Iterable[RawRecord]) -> list[Published]:
    """Return the generator's list, completed by what is in the input topics and isn't in it.

    A generator that dies, or waits in vain for the broker's answer, leaves records that it doesn't know of; they are
    promised as much as the others. Where nobody can read a record's headers, their digest says so.
    """
    known = {record.coordinates: record for record in listed}
    for record in standing:
        place = record.place
        if place not in known or record.headers is None:
            moment_ms = known[place].timestamp_ms if place in known else record.timestamp_ms
            known[place] = Published(*place, moment_ms, record.content)
    return list(known.values())


def _inputs(where: Where) -> Inputs:
    standing = [one for topic in where.inputs for one in read_topic(where.bootstrap, topic, "read_committed")]
    return Inputs(
        with_input(read_manifest(where.manifest), standing),
        {record.place: record.registered_bytes for record in standing},
        {record.place: record.input_bytes for record in standing},
        {record.place: record.timestamp_type for record in standing},
    )


def _committed(where: Where) -> tuple[dict[Partition, int], str]:
    consumer = reader(where.bootstrap, "read_committed", where.group)
    try:
        consumed = (*where.inputs, *where.redelivery_topics)
        places = [(topic, number) for topic in consumed for number in partitions_of(consumer, topic)]
        cluster_id: str = consumer.list_topics(where.wait_topic, timeout=ANSWER_S).cluster_id
        return dict(committed_of(consumer, places)), cluster_id
    finally:
        consumer.close()


def _decoded(where: Where, topics: Iterable[str], decode: Callable[[RawRecord, bool], Decoded]) -> list[Decoded]:
    """Return every record of some topics, aborted ones too, with whether it is committed."""
    found: list[Decoded] = []
    for topic in topics:
        stable = {record.place for record in read_topic(where.bootstrap, topic, "read_committed")}
        everything = read_topic(where.bootstrap, topic, "read_uncommitted")
        found += [decode(record, record.place in stable) for record in everything]
    return found
