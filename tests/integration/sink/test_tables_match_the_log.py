"""P1, P5, P6: through real Kafka, Spark and Postgres the tables hold what the wait topic leaves open, byte for byte."""

from __future__ import annotations

import json
import random

import pytest

from tests.conftest import SettingsFactory
from tests.integration.sink.conftest import StartSink
from tests.integration.sink.wait_topic import WaitTopic, new_id, rows_of, tombstone, transaction, wait_record
from tests.support.committed_offsets import committed
from tests.support.database import Database
from tests.support.kafka_io import Outgoing
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.records.dead_letter import Failure, Reason, dead_letter_headers
from wait_registry.records.headers import decode_headers_json
from wait_registry.records.lineage import Lineage
from wait_registry.records.original import Original
from wait_registry.settings.root import Settings

AWKWARD_HEADERS = (
    ("twice", b"1"),
    ("null", None),
    ("twice", b""),
    ("not utf-8", b"\xff\x00\xfe"),
    ("n\x00ul", b"x"),
    ("", b"empty name"),
)
VALUES = {"null": None, "empty": b"", "binary": b"\x00\xff" * 7, "large": bytes(range(256)) * 4096}


def positions_of(database: Database, settings: Settings, topic: str) -> list[tuple[int, int]]:
    return database.rows(
        settings, "select partition, next_offset from sink_progress where topic = %s order by 1", topic
    )


def high_watermarks(topics: Topics, topic: str, partitions: int) -> list[tuple[int, int]]:
    from wait_registry.kafka.positions import end_offsets

    return sorted(end_offsets(topics.admin, topic, range(partitions), "read_uncommitted").items())


def random_history(chooser: random.Random, count: int) -> list[Outgoing]:
    ids = [new_id() for _ in range(30)]
    picks = [(ids.index(wait_id), chooser.random() < 0.45) for wait_id in chooser.choices(ids, k=count)]
    return [
        tombstone(ids[number], number % 4) if ended else wait_record(ids[number], number % 4, value=b"%d" % at)
        for at, (number, ended) in enumerate(picks)
    ]


def test_any_history_over_several_batches_and_what_comes_while_it_runs(
    prepared: SettingsFactory, topics: Topics, database: Database, start_sink: StartSink
) -> None:
    settings = prepared({"sink.poll_interval_s": 0.2, "sink.max_batch_records": 60, "sink.idle_progress_s": 1})
    log, chooser = WaitTopic(topics, settings.wait.topic), random.Random(7)
    log.write(*random_history(chooser, 400))
    with transaction(topics, log.name, commit=False) as producer:
        producer.produce(log.name, key=new_id().encode(), value=b"aborted", partition=1)
    sink = start_sink(settings).wait_ready()
    wait_until(lambda: rows_of(database, settings) == log.rows, 60, "the rows")

    # What is running already reads on, past markers that nothing follows.
    early = new_id()
    log.write(*random_history(chooser, 100), tombstone(early, 2), wait_record(early, 2))
    with transaction(topics, log.name, commit=True) as producer:
        producer.produce(log.name, key=early.encode(), value=None, partition=2)
        log.rows.pop(early)
    with transaction(topics, log.name, commit=False) as producer:
        producer.produce(log.name, key=new_id().encode(), value=b"aborted", partition=3)
    # The coordinator writes markers after it has answered, so the end is asked for again and again.
    wait_until(lambda: at_the_end(topics, database, settings, log.name), 60, "positions at the log's end")
    assert rows_of(database, settings) == log.rows

    wait_until(lambda: fresh(database, settings, log.name), 60, "fresh position times while idle")
    group = f"waitreg.sink.{log.name}"
    positions = positions_of(database, settings, log.name)
    wait_until(lambda: mirrored(topics, group, log.name) == positions, 60, "the mirrored offsets")
    text = sink.service.telemetry.registry.expose().decode()
    assert 'waitreg_sink_records_total{stream="wait"}' in text
    assert 'waitreg_ready{service="sink"} 1.0' in text


def at_the_end(topics: Topics, database: Database, settings: Settings, topic: str) -> bool:
    return positions_of(database, settings, topic) == high_watermarks(topics, topic, 4)


def fresh(database: Database, settings: Settings, topic: str) -> bool:
    query = (
        "select bool_and(position_time > now() - interval '5 s' and seen_at >= position_time) "
        "from sink_progress where topic = %s"
    )
    return bool(database.rows(settings, query, topic)[0][0])


def mirrored(topics: Topics, group: str, topic: str) -> list[tuple[int, int]]:
    return list(enumerate(committed(topics.bootstrap, group, topic, 4)))


def older_dialect(wait_id: str) -> Outgoing:
    headers = {
        "ORIGINAL_TOPIC": "orders",
        "PARTITION": "4",
        "ORIGINAL_HEADERS": json.dumps({"a": "b"}),
        "WAIT_EXPIRATION_TIME": "2030-01-02T03:04:05",
    }
    encoded = tuple((name, text.encode()) for name, text in headers.items())
    return Outgoing(key=wait_id.encode(), value=b"older", headers=encoded, partition=0)


def test_bytes_come_through_as_they_went_in_and_what_cannot_be_read_is_set_aside(
    prepared: SettingsFactory, topics: Topics, database: Database, start_sink: StartSink
) -> None:
    settings = prepared({"sink.poll_interval_s": 0.2})
    log, ids = WaitTopic(topics, settings.wait.topic), {name: new_id() for name in (*VALUES, "older", "good then bad")}
    log.write(
        *[
            wait_record(ids[name], 1, value=value, key=value and value[:99], headers=AWKWARD_HEADERS)
            for name, value in VALUES.items()
        ],
        older_dialect(ids["older"]),
        wait_record(ids["good then bad"], 2),
    )
    bad = [
        Outgoing(key=ids["good then bad"].encode(), value=b"no headers", partition=2),
        Outgoing(key=b"\xffkey", value=b"bad key", headers=AWKWARD_HEADERS[:4], partition=2),
        Outgoing(key=b"", value=b"empty key", partition=2),
        Outgoing(key=b"\xffkey", value=None, partition=2),
    ]
    topics.produce(log.name, [*bad])
    lineage = Lineage.of(
        Original("orders", 0, 7, 1_700_000_000_000, "create", b"k", b"v", ()),
        wait_id=ids["null"], wait_partition=1, wait_offset=0, group="g", instance="i", delivery=2,
    )  # fmt: skip
    failure = Failure(Reason.FAILED, "ValueError", "no such thing", "trace", 1_700_000_001_000)
    letter = tuple(dead_letter_headers(AWKWARD_HEADERS[:4], lineage, failure))
    topics.produce(
        settings.dead_letter.topic,
        [
            Outgoing(key=None, value=b"", headers=letter, partition=0),
            Outgoing(key=b"foreign", value=None, headers=AWKWARD_HEADERS[:4], partition=1),
        ],
    )

    start_sink(settings, once=True).wait_ended()

    rows = database.rows(settings, "select wait_expiration_uuid, original_key, body, original_headers from wait")
    found = {wait_id: (key, body, headers) for wait_id, key, body, headers in rows}
    assert found.keys() == set(ids.values())
    for name, value in VALUES.items():
        key, body, headers = found[ids[name]]
        assert (key, body) == (value and value[:99], value), name
        assert decode_headers_json(json.dumps(headers).encode()) == AWKWARD_HEADERS
    assert database.rows(
        settings,
        "select original_partition, original_offset, original_headers, body, wait_expiration_time at time zone 'utc', "
        "consumer_group from wait where wait_expiration_uuid = %s",
        ids["older"],
    )[0][:4] == (4, None, [["a", "Yg=="]], b"older")
    quarantined = database.rows(settings, 'select key, body, error from quarantine order by "offset"')
    assert [(key, body) for key, body, _ in quarantined] == [(record.key, record.value) for record in bad]
    assert "WAIT_EXPIRATION_TIME" in quarantined[0][2]
    letters = database.rows(
        settings,
        "select reason, error_class, error_message, wait_expiration_uuid, wait_offset, delivery, key, body, headers "
        "from dead_letter order by partition",
    )
    ours, foreign = letters
    assert ours[:8] == ("failed", "ValueError", "no such thing", ids["null"], 0, 2, None, b"")
    assert foreign[:8] == (None, None, None, None, None, None, b"foreign", None)
    for row in letters:
        assert decode_headers_json(json.dumps(row[8]).encode()) == AWKWARD_HEADERS[:4]
    readable = database.rows(settings, "select body_encoding, original_headers from wait_readable")
    assert {encoding for encoding, _ in readable} == {None, "utf-8", "base64"}
    assert database.rows(settings, "select count(*) from dead_letter_readable") == [(2,)]


@pytest.mark.guarantee("P1.10", "P6.5")
def test_an_aborted_tombstone_resolves_nothing_and_the_position_is_the_logs_end(
    prepared: SettingsFactory, topics: Topics, database: Database, start_sink: StartSink
) -> None:
    settings = prepared({"sink.poll_interval_s": 0.2})
    log, (resolved, standing) = WaitTopic(topics, settings.wait.topic), (new_id(), new_id())
    log.write(wait_record(resolved, 0), wait_record(standing, 1))
    with transaction(topics, log.name, commit=True) as producer:
        producer.produce(log.name, key=resolved.encode(), value=None, partition=0)
        log.rows.pop(resolved)
    with transaction(topics, log.name, commit=False) as producer:
        producer.produce(log.name, key=standing.encode(), value=None, partition=1)

    assert start_sink(settings, once=True).wait_ended() is None

    assert rows_of(database, settings) == log.rows
    assert positions_of(database, settings, log.name) == high_watermarks(topics, log.name, 4)


ROWS = "select wait_expiration_uuid, wait_partition, wait_offset from wait"


@pytest.mark.guarantee("P6.12")
@pytest.mark.parametrize("together", [True, False], ids=["in one batch", "in batches of their own"])
def test_what_stands_in_a_partition_is_shown_whatever_another_one_says_of_its_id(
    prepared: SettingsFactory, topics: Topics, database: Database, start_sink: StartSink, together: bool
) -> None:
    settings = prepared({"sink.poll_interval_s": 0.1})
    log, twice, strayed = WaitTopic(topics, settings.wait.topic), new_id(), new_id()

    def sink() -> None:
        assert start_sink(settings, once=True).wait_ended() is None

    log.write(wait_record(twice, 0), wait_record(strayed, 0))
    if not together:
        sink()
    [_, (_, offset)] = log.write(tombstone(strayed, 1), wait_record(twice, 1))
    sink()
    [(strayed_at, strayed_offset)] = [row[1:] for row in database.rows(settings, ROWS) if row[0] == strayed]
    assert (strayed_at, strayed_offset) == (0, 1), "a tombstone resolves what stands in its own partition"
    assert (twice, 1, offset) in database.rows(settings, ROWS), "one row an id, and no error"

    log.write(tombstone(twice, 1), tombstone(strayed, 0))
    sink()
    assert database.rows(settings, ROWS) == []
    assert database.rows(settings, "select * from quarantine") == []
