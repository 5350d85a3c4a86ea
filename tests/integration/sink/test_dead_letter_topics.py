"""P1, P7: dead letters of a recreated topic are kept, and those too large for the table are quarantined."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing

import pytest

from sink.progress import read_progress
from sink.read.start_positions import dead_letter_start
from tests.conftest import SettingsFactory
from tests.integration.sink.applying import PARTITIONS, HandFed, now_ms
from tests.integration.sink.conftest import StartSink
from tests.integration.sink.wait_topic import new_id
from tests.support.database import Database
from tests.support.kafka_io import Outgoing, produce
from tests.support.topics import Topics
from tests.unit.sink.batches import Row
from wait_registry.kafka.clients import admin
from wait_registry.records.dead_letter import Failure, Reason, dead_letter_headers
from wait_registry.records.lineage import Lineage
from wait_registry.records.original import Original
from wait_registry.records.tombstone import Outcome, tombstone_headers

ORIGINAL = Original("orders", 0, 7, 1_700_000_000_000, "create", b"k", b"body", ())


def letter(topic: str, offset: int, body: bytes, wait_id: str = "") -> Row:
    lineage = Lineage.of(
        ORIGINAL, wait_id=wait_id or new_id(), wait_partition=0, wait_offset=1, group="g", instance="i", delivery=1
    )
    headers = dead_letter_headers((), lineage, Failure(Reason.EXPIRED, None, None, None, now_ms()))
    return Row(b"k", body, 0, offset, now_ms(), tuple(headers), topic)


@pytest.mark.guarantee("P1.13")
def test_its_letters_are_shown_beside_those_of_the_old_one(prepared: SettingsFactory, database: Database) -> None:
    settings = prepared({"dead_letter.partitions": PARTITIONS})
    topic, late = settings.dead_letter.topic, new_id()
    with closing(HandFed(settings, topic, dead_letters=True)) as old:
        old.feed([letter(topic, 0, b"old 0", late), letter(topic, 1, b"old 1"), letter(topic, 3, b"old 3")])
        recorded, _ = read_progress(old.connection, topic)
        assert recorded is not None
        start = dead_letter_start(old.connection, admin(settings.kafka), topic)
        assert {position.next_offset for position in start.positions.values()} == {0}

    def shown() -> Mapping[tuple[str, int], bytes]:
        rows = database.rows(settings, 'select topic, "offset", body from dead_letter')
        return {(topic, offset): body for topic, offset, body in rows}

    kept = f"{topic}@{recorded.topic_id}"
    of_the_old = {(kept, 0): b"old 0", (kept, 1): b"old 1", (kept, 3): b"old 3"}
    with closing(HandFed(settings, topic, dead_letters=True)) as new:
        new.feed([letter(topic, 0, b"new 0"), letter(topic, 1, b"new 1")])
        assert shown() == {**of_the_old, (topic, 0): b"new 0", (topic, 1): b"new 1"}
        dead_letter_start(new.connection, admin(settings.kafka), topic)
        assert shown() == {**of_the_old, (topic, 0): b"new 0", (topic, 1): b"new 1"}, "it is the same topic now"

    with closing(HandFed(settings)) as waits:
        waits.feed([Row(late.encode(), None, 0, 2, now_ms(), tuple(tombstone_headers(Outcome.DONE)))])
    marked = database.rows(settings, 'select topic, "offset" from dead_letter where finished_late')
    assert marked == [(kept, 0)], "what is finished late is marked there too"


MIB = 1024 * 1024


@pytest.mark.guarantee("P7.9")
@pytest.mark.fault("F10")
def test_its_place_and_size_are_kept_and_the_others_are_shown(
    prepared: SettingsFactory, topics: Topics, database: Database, start_sink: StartSink
) -> None:
    settings = prepared({"sink.poll_interval_s": 0.1, "dead_letter.partitions": 1})
    topic = settings.dead_letter.topic
    large = [
        Outgoing(bytes(34 * MIB), b"large", (("name", b"value"),)),
        Outgoing(b"value", bytes(34 * MIB)),
        Outgoing(b"value", b"key", (("name", bytes(34 * MIB)),)),
    ]
    produce(topics.bootstrap, topic, [b"before", *large, Outgoing(None, b"null"), b"after"], compression="lz4")

    assert start_sink(settings, once=True).wait_ended() is None

    assert database.rows(settings, 'select "offset", key, body from dead_letter order by 1') == [
        (0, None, b"before"),
        (4, b"null", None),
        (5, None, b"after"),
    ]
    kept = database.rows(
        settings, 'select "offset", key, headers, body, error from quarantine where topic = %s order by 1', topic
    )
    assert [row[:-1] for row in kept] == [(offset, None, [], None) for offset in (1, 2, 3)]
    sizes = [
        34 * MIB + len("large" + "name" + "value"),
        34 * MIB + len("value"),
        34 * MIB + len("value" + "key" + "name"),
    ]
    for (*_, error), size in zip(kept, sizes, strict=True):
        assert f"of {size} bytes, more than the table takes: read the topic" in error
