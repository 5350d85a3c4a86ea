"""Reads what a reconciliation is judged by, with clients that belong to no service."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from wait_registry.errors import ConfigurationError, DataError
from wait_registry.kafka.clients import admin
from wait_registry.kafka.cluster import cluster_id, describe_topic
from wait_registry.kafka.positions import end_offsets
from wait_registry.kafka.topics import delete_retention_ms
from wait_registry.postgres.connection import connect_pooled
from wait_registry.records.dead_letter import dead_letter_topic, decode_dead_letter
from wait_registry.records.tombstone import decode_outcome
from wait_registry.records.wait_id import wait_id
from wait_registry.records.wait_record import decode_wait_record
from wait_registry.settings.tree import Settings
from waitreg.downstream.calls import read_calls
from waitreg.load.committed_records import read_committed, read_headers
from waitreg.load.manifest import Published, fingerprint, read_manifest
from waitreg.reconcile.reconciliation import Evidence
from waitreg.reconcile.wait_log import DeadLetterSeen, WaitEntry

REGISTERED = "select wait_expiration_uuid from wait where consumer_group = %s"


def read_evidence(settings: Settings, manifest: Path, calls: Path, kills_ms: Sequence[int] | None = None) -> Evidence:
    """Read everything known from outside about the processor's group of these settings.

    What Postgres shows agrees with the log only once the sink has caught up (see `sink_lag`).

    Args:
        settings: name cluster, wait and dead letter topics, group and input topics, and Postgres.
        manifest: what the load generator wrote.
        calls: the downstream's log.
        kills_ms: when processors of the group were killed, ms since the epoch; None when unknown.

    Raises:
        ConfigurationError: the manifest names no record or records older than delete.retention.ms, or there is no
            such topic.
        DataError: a file is something else.
        TransientError: Kafka or Postgres can't be reached; try again.
    """
    processor = settings.processor
    published = _published(settings, manifest)
    topics = sorted({dead_letter_topic(settings.dead_letter.topic, one, processor.group) for one in processor.topics})
    client = admin(settings.kafka)
    cluster = cluster_id(client)
    # Arguments are evaluated in this order. The log comes after calls and dead letters: a record that ends meanwhile
    # then looks unfinished, and not as if only half of its end had happened.
    return Evidence(
        published=published,
        calls=list(read_calls(calls)),
        dead_letters=[one for topic in topics for one in read_dead_letters(settings, topic, processor.group)],
        wait_log=list(read_wait_log(settings, processor.group)),
        tables={row[0] for row in query(settings, REGISTERED, processor.group)},
        kills_ms=kills_ms,
        wait_ids={
            one.coordinates: wait_id(cluster, one.coordinates, processor.group, one.timestamp_ms) for one in published
        },
    )


def _published(settings: Settings, manifest: Path) -> list[Published]:
    published = list(read_manifest(manifest))
    if not published:
        raise ConfigurationError(
            f"{manifest} names no record: there is nothing to judge. Publish some with `waitreg load --manifest "
            f"{manifest}`, or give the manifest of the load that is to be judged"
        )
    retention_ms = delete_retention_ms(admin(settings.kafka), settings.wait.topic)
    if min(one.timestamp_ms for one in published) < time.time_ns() // 1_000_000 - retention_ms:
        raise ConfigurationError(
            f"{manifest} names records that are older than delete.retention.ms of the wait topic ({retention_ms} ms): "
            "their tombstones may be gone. Start again with another input topic and another manifest"
        )
    return published


def read_dead_letters(settings: Settings, topic: str, group: str) -> Iterator[DeadLetterSeen]:
    """Return a group's dead letters as a read_committed consumer sees them; records of other origin are skipped."""
    for message in read_committed(settings, topic):
        headers = read_headers(message)
        if headers is None:
            continue
        dead_letter = decode_dead_letter(headers)
        lineage, failure = dead_letter.lineage, dead_letter.failure
        if lineage is None or failure is None or lineage.group != group:
            continue
        if lineage.original_partition is None or lineage.original_offset is None:
            continue
        partition, offset = lineage.wait_partition, lineage.wait_offset
        yield DeadLetterSeen(
            original=(lineage.original_topic, lineage.original_partition, lineage.original_offset),
            timestamp_ms=-1 if lineage.original_timestamp_ms is None else lineage.original_timestamp_ms,
            reason=failure.reason.value,
            wait_id=lineage.wait_id,
            registration=None if partition is None or offset is None else (partition, offset),
            time_ms=failure.time_ms,
            fingerprint=fingerprint(message.key(), message.value(), dead_letter.headers),
        )


def read_wait_log(settings: Settings, group: str) -> Iterator[WaitEntry]:
    """Return the wait topic's whole log: a group's registrations, and all tombstones (which name no group).

    What can't be read as a wait record, which a sink puts into quarantine, registers nothing: it is skipped.
    """
    for message in read_committed(settings, settings.wait.topic):
        partition, offset, append_ms = message.partition(), message.offset(), message.timestamp()[1]
        assert partition is not None and offset is not None
        key = (message.key() or b"").decode("utf-8", "backslashreplace")
        if message.value() is None:
            outcome = decode_outcome(read_headers(message))
            yield WaitEntry(partition, offset, append_ms, key, None, None if outcome is None else outcome.value)
            continue
        try:
            record = decode_wait_record(message.key(), message.value(), read_headers(message))
        except DataError:
            continue
        original = record.original
        if record.group == group and original.partition is not None and original.offset is not None:
            yield WaitEntry(partition, offset, append_ms, key, (original.topic, original.partition, original.offset))


def query(settings: Settings, text: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a query to Postgres."""
    with connect_pooled(settings.postgres, application_name="waitreg reconciliation") as connection:
        return connection.execute(text.encode(), parameters or None).fetchall()


def sink_lag(settings: Settings) -> int:
    """Return how many offsets of the wait topic the sink hasn't read yet."""
    client = admin(settings.kafka)
    topic = settings.wait.topic
    ends = end_offsets(client, topic, range(describe_topic(client, topic).partitions))
    positions = dict(query(settings, "select partition, next_offset from sink_progress where topic = %s", topic))
    return sum(max(0, end - positions.get(partition, 0)) for partition, end in ends.items())
