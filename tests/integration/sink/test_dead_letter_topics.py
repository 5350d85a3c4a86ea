"""P1, P7: dead letters of a recreated topic are kept, and those too large for the table are quarantined."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import closing

import pytest

from sink.progress import read_progress
from sink.read.start_positions import dead_letter_start
from tests.conftest import SettingsFactory
from tests.integration.sink.applying import PARTITIONS, HandFed, letter, now_ms
from tests.integration.sink.conftest import SinkScenarioFactory
from tests.integration.sink.wait_topic import new_id
from tests.support.database import Database
from tests.support.kafka_io import Outgoing, produce
from tests.support.waiting import wait_until
from tests.unit.sink.batches import Row
from wait_registry.kafka.clients import admin
from wait_registry.records.tombstone import Outcome, tombstone_headers
from wait_registry.records.topics import kept_topic_name
from wait_registry.telemetry import metrics


@pytest.mark.guarantee("P1.13")
def test_letters_of_a_recreated_topic_are_shown_with_the_old_ones(
    prepared: SettingsFactory, database: Database
) -> None:
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

    kept = kept_topic_name(topic, recorded.topic_id)
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
def test_of_a_letter_too_large_for_the_table_place_and_size_are_kept(sink_scenario: SinkScenarioFactory) -> None:
    at = sink_scenario({"dead_letter.partitions": 1})
    large = [
        Outgoing(bytes(34 * MIB), b"large", (("name", b"value"),)),
        Outgoing(b"value", bytes(34 * MIB)),
        Outgoing(b"value", b"key", (("name", bytes(34 * MIB)),)),
    ]
    topic = at.settings.dead_letter.topic
    produce(at.topics.bootstrap, topic, [b"before", *large, Outgoing(None, b"null"), b"after"], compression="lz4")
    at.drain()
    assert at.rows('select "offset", key, body from dead_letter order by 1') == [
        (0, None, b"before"),
        (4, b"null", None),
        (5, None, b"after"),
    ]
    kept = at.rows(
        "select \"offset\", key, headers, body, substring(error from 'of (.*) bytes, more than the table takes') "
        "from quarantine where topic = %s order by 1",
        topic,
    )
    sizes = [34 * MIB + len("largenamevalue"), 34 * MIB + len("value"), 34 * MIB + len("valuekeyname")]
    assert kept == [(offset, None, [], None, str(size)) for offset, size in enumerate(sizes, start=1)]


def test_letters_deleted_unread_are_logged_once_and_counted(
    sink_scenario: SinkScenarioFactory, caplog: pytest.LogCaptureFixture
) -> None:
    at = sink_scenario({"dead_letter.partitions": 1})
    topic = at.settings.dead_letter.topic

    def shown() -> list[int]:
        return [offset for (offset,) in at.rows('select "offset" from dead_letter order by 1')]

    at.topics.produce(topic, [b"0"])
    sink = at.start().wait_ready()
    wait_until(lambda: shown() == [0], what="the first letter")
    caplog.clear()
    with at.database.connect(at.settings) as other, other.transaction():
        other.execute("lock table dead_letter in share mode")
        at.topics.produce(topic, [b"1"])
        blocked = "select pid from pg_locks where relation = 'dead_letter'::regclass and not granted"
        wait_until(lambda: at.rows(blocked), what="a batch that waits for the lock")
        at.topics.produce(topic, [b"%d" % number for number in range(2, 10)])
        at.topics.delete_before(topic, {0: 7})
    wait_until(lambda: shown() == [0, 1, 7, 8, 9], what="the letters that were not deleted")
    [said] = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert "the position 2 is outside of the log (7 to 10)" in said
    counted = sink.service.telemetry.registry.prometheus
    assert counted.get_sample_value(metrics.SINK_PASSED.name, {"topic": topic}) == 5
    assert counted.get_sample_value(metrics.SINK_RESTARTS.name, {"stream": "dead_letter", "cause": "spark"}) == 0
