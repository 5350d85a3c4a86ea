"""The evidence is read from real topics as the codec writes them, and nothing uncommitted or foreign is in it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.conftest import SettingsFactory
from tests.support.database import Database
from tests.support.kafka_io import Outgoing
from tests.support.raw_headers import produce_with_header_name
from tests.support.topics import Topics
from wait_registry.errors import ConfigurationError
from wait_registry.kafka.clients import admin
from wait_registry.kafka.cluster import cluster_id
from wait_registry.records.dead_letter import Failure, Reason, dead_letter_headers
from wait_registry.records.lineage import Lineage
from wait_registry.records.original import Original
from wait_registry.records.tombstone import Outcome, tombstone_headers
from wait_registry.records.wait_id import wait_id as make_wait_id
from wait_registry.records.wait_record import ExpiryRule, WaitRecordEncoder
from wait_registry.settings.tree import Settings
from waitreg.downstream.calls import Call
from waitreg.load.json_lines import JsonLines
from waitreg.load.load import LoadPlan, run_load
from waitreg.load.manifest import Published, fingerprint, read_manifest
from waitreg.reconcile.breaches import Breach
from waitreg.reconcile.evidence import read_evidence, sink_lag
from waitreg.reconcile.reconciliation import reconcile

LONG_AGO_MS = 1_700_000_000_000


@dataclass(frozen=True, slots=True)
class Scene:
    """Two published records: the first one done, the second one expired."""

    settings: Settings
    manifest: Path
    calls: Path
    lineage: Lineage
    expired: Original
    topics: Topics

    def dead_letter(self, more: bytes = b"") -> Outgoing:
        """Return the dead letter of the second record, whose value has more bytes at its end."""
        failure = Failure(Reason.EXPIRED, None, None, None, LONG_AGO_MS)
        headers = dead_letter_headers(self.expired.headers, self.lineage, failure)
        return Outgoing((self.expired.value or b"") + more, self.expired.key, headers)

    def export(self, *others: Outgoing, more: bytes = b"") -> None:
        """Write the dead letter, and others after it."""
        self.topics.produce(self.settings.dead_letter.topic, [self.dead_letter(more), *others])

    def judge(self) -> dict[Breach, int]:
        result = reconcile(read_evidence(self.settings, self.manifest, self.calls))
        return {breach: count for breach, count in result.breaches.items() if count}


def wait_record(settings: Settings, original: Original) -> Outgoing:
    encoder = WaitRecordEncoder(settings.processor.group, "here", settings.dead_letter.topic, ExpiryRule("dlq", 3))
    own = own_id(settings, original)
    return Outgoing(original.value or b"", own.encode(), encoder.headers(original, own, 0))


def tombstone(wait: Outgoing, partition: int, outcome: Outcome) -> Outgoing:
    return Outgoing(None, wait.key, list(tombstone_headers(outcome)), partition)


def own_id(settings: Settings, original: Original) -> str:
    cluster, group = cluster_id(admin(settings.kafka)), settings.processor.group
    place = (original.topic, original.partition, original.offset)
    return make_wait_id(cluster, place, group, original.timestamp_ms)


def as_call(published: Published) -> Call:
    body = published.fingerprint.value or fingerprint(None, b"", None).value or ""
    return Call(1, 0, 0, 0.0, 0.0, "id", *published.coordinates, 1, 200, body)


@pytest.fixture
def scene(prepared: SettingsFactory, topics: Topics, tmp_path: Path) -> Scene:
    settings = prepared(input_partitions=1)
    manifest, calls = tmp_path / "manifest.jsonl", tmp_path / "calls.jsonl"
    run_load(settings, LoadPlan(settings.processor.topics[0], 2, manifest=manifest))
    done, expired = (
        Original(one.topic, one.partition, one.offset, one.timestamp_ms, "create", one.key, one.value, one.headers)
        for one in topics.read(settings.processor.topics[0])
    )
    with JsonLines(calls) as log:
        log.append(as_call(next(read_manifest(manifest))))
    waits = [wait_record(settings, original) for original in (done, expired)]
    landed = topics.produce(settings.wait.topic, [*waits])
    outcomes = zip(waits, landed, (Outcome.DONE, Outcome.EXPIRED), strict=True)
    topics.produce(settings.wait.topic, [tombstone(wait, place[0], outcome) for wait, place, outcome in outcomes])
    partition, offset = landed[1]
    lineage = Lineage.of(
        expired,
        wait_id=own_id(settings, expired),
        wait_partition=partition,
        wait_offset=offset,
        group=settings.processor.group,
        instance="here",
        delivery=1,
    )
    return Scene(settings, manifest, calls, lineage, expired, topics)


@pytest.mark.parametrize(
    ("others", "more", "breaches"),
    [
        pytest.param([], b"", {}, id="true"),
        pytest.param([Outgoing(b"x", b"k", [("WAIT_LINEAGE", b"7")])], b"", {}, id="another client's dead letter"),
        pytest.param([], b" ", {Breach.CHANGED: 1}, id="one more byte"),
    ],
)
def test_history_reconciles_unless_a_byte_changed(
    scene: Scene, others: list[Outgoing], more: bytes, breaches: dict[Breach, int]
) -> None:
    scene.export(*others, more=more)
    assert scene.judge() == breaches


def test_records_older_than_tombstones_are_kept_are_refused(scene: Scene) -> None:
    old = [replace(one, timestamp_ms=LONG_AGO_MS) for one in read_manifest(scene.manifest)]
    scene.manifest.unlink()
    with JsonLines(scene.manifest) as manifest:
        for one in old:
            manifest.append(one)
    with pytest.raises(ConfigurationError, match=r"older than delete\.retention\.ms"):
        scene.judge()


def test_record_with_unreadable_headers_is_skipped(scene: Scene, topics: Topics) -> None:
    letters = scene.settings.dead_letter.topic
    # Many, so that CPython has specialised its calls by the time that the unreadable one comes.
    topics.produce(letters, [Outgoing(b"x", b"k", [("a", b"b")], 0)] * 100)
    for _ in range(2):
        produce_with_header_name(topics.bootstrap, letters, b"\xff\xfe", b"unreadable")
    scene.export()
    assert scene.judge() == {}


def test_dead_letter_of_aborted_transaction_does_not_count(scene: Scene) -> None:
    letter, topic = scene.dead_letter(), scene.settings.dead_letter.topic
    producer = Producer({"bootstrap.servers": scene.topics.bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, key=letter.key, value=letter.value, headers=list(letter.headers))
    producer.flush(30)
    producer.abort_transaction(30)
    assert scene.judge() == {Breach.LOST: 1, Breach.UNPAIRED: 1}


def test_row_of_a_closed_registration_differs_from_the_log(scene: Scene, database: Database) -> None:
    scene.export()
    database.execute(
        scene.settings,
        "insert into wait (wait_expiration_uuid, original_topic, wait_expiration_time, consumer_group, wait_topic,"
        " wait_partition, wait_offset) values (%s, 'orders', now(), %s, 'wait', 0, 0)",
        (scene.lineage.wait_id, scene.settings.processor.group),
    )
    assert scene.judge() == {Breach.TABLES_DIFFER: 1}


def test_lag_of_the_sink_is_what_postgres_lacks(scene: Scene, database: Database) -> None:
    assert sink_lag(scene.settings) == 4
    with database.connect(scene.settings) as connection:
        for partition in range(scene.settings.wait.partitions):
            connection.execute(
                "insert into sink_progress values (%s, 'id', %s, 4, now(), now())",
                (scene.settings.wait.topic, partition),
            )
    assert sink_lag(scene.settings) == 0
