"""P1, P5, P6: through real Kafka, Spark and Postgres the tables hold what the wait topic leaves open, byte for byte."""

from __future__ import annotations

import json
import random

import pytest

from tests.integration.sink.conftest import SinkScenario, SinkScenarioFactory
from tests.integration.sink.wait_topic import new_id, rows_of, tombstone, transaction, wait_record
from tests.support.committed_offsets import committed
from tests.support.kafka_io import Outgoing
from tests.support.waiting import wait_until
from wait_registry.kafka.positions import end_offsets
from wait_registry.records.dead_letter import Failure, Reason, dead_letter_headers
from wait_registry.records.headers import decode_headers_json
from wait_registry.records.lineage import Lineage
from wait_registry.records.original import Original

AWKWARD_HEADERS = (
    ("twice", b"1"),
    ("null", None),
    ("twice", b""),
    ("not utf-8", b"\xff\x00\xfe"),
    ("n\x00ul", b"x"),
    ("", b"empty name"),
)
VALUES = {"null": None, "empty": b"", "binary": b"\x00\xff" * 7, "large": bytes(range(256)) * 4096}


def positions_of(at: SinkScenario) -> list[tuple[int, int]]:
    query = "select partition, next_offset from sink_progress where topic = %s order by 1"
    return at.rows(query, at.log.name)


def is_at_the_end(at: SinkScenario) -> bool:
    ends = end_offsets(at.topics.admin, at.log.name, range(4), "read_uncommitted")
    return positions_of(at) == sorted(ends.items())


def mirrored(at: SinkScenario) -> list[tuple[int, int]]:
    return list(enumerate(committed(at.topics.bootstrap, f"waitreg.sink.{at.log.name}", at.log.name, 4)))


def random_history(chooser: random.Random, count: int) -> list[Outgoing]:
    ids = [new_id() for _ in range(30)]
    picks = [(ids.index(wait_id), chooser.random() < 0.45) for wait_id in chooser.choices(ids, k=count)]
    return [
        tombstone(ids[number], number % 4) if ended else wait_record(ids[number], number % 4, value=b"%d" % at)
        for at, (number, ended) in enumerate(picks)
    ]


def test_any_history_over_several_batches_and_what_comes_meanwhile(sink_scenario: SinkScenarioFactory) -> None:
    at, chooser = sink_scenario({"sink.max_batch_records": 60, "sink.idle_progress_s": 1}), random.Random(7)
    at.log.write(*random_history(chooser, 400))
    with transaction(at.topics, at.log.name, commit=False) as producer:
        producer.produce(at.log.name, key=new_id().encode(), value=b"aborted", partition=1)
    sink = at.start().wait_ready()
    at.wait_exact()
    # What is running already reads on, past markers that nothing follows.
    early = new_id()
    at.log.write(*random_history(chooser, 100), tombstone(early, 2), wait_record(early, 2))
    with transaction(at.topics, at.log.name, commit=True) as producer:
        producer.produce(at.log.name, key=early.encode(), value=None, partition=2)
        at.log.rows.pop(early)
    with transaction(at.topics, at.log.name, commit=False) as producer:
        producer.produce(at.log.name, key=new_id().encode(), value=b"aborted", partition=3)
    # The coordinator writes markers after it has answered, so the end is asked for again and again.
    wait_until(lambda: is_at_the_end(at), 60, "positions at the log's end")
    assert at.is_exact()
    fresh = "select bool_and(position_time > now() - interval '5 s' and seen_at >= position_time) from sink_progress"
    wait_until(lambda: at.rows(fresh) == [(True,)], 60, "fresh position times while idle")
    wait_until(lambda: mirrored(at) == positions_of(at), 60, "the mirrored offsets")
    text = sink.service.telemetry.registry.expose().decode()
    assert 'waitreg_sink_records_total{stream="wait"}' in text
    assert 'waitreg_ready{service="sink"} 1.0' in text


def legacy_record(wait_id: str) -> Outgoing:
    headers = {
        "ORIGINAL_TOPIC": "orders",
        "PARTITION": "4",
        "ORIGINAL_HEADERS": json.dumps({"a": "b"}),
        "WAIT_EXPIRATION_TIME": "2030-01-02T03:04:05",
    }
    encoded = tuple((name, text.encode()) for name, text in headers.items())
    return Outgoing(key=wait_id.encode(), value=b"older", headers=encoded, partition=0)


@pytest.mark.guarantee("P1.12")
def test_bytes_come_through_unchanged_and_undecodable_records_are_kept(sink_scenario: SinkScenarioFactory) -> None:
    at, ids = sink_scenario(), {name: new_id() for name in (*VALUES, "older", "good then bad")}
    at.log.write(
        *[
            wait_record(ids[name], 1, value=value, key=value and value[:99], headers=AWKWARD_HEADERS)
            for name, value in VALUES.items()
        ],
        legacy_record(ids["older"]),
        wait_record(ids["good then bad"], 2),
    )
    bad = [
        Outgoing(key=ids["good then bad"].encode(), value=b"no headers", partition=2),
        Outgoing(key=b"\xffkey", value=b"bad key", headers=AWKWARD_HEADERS[:4], partition=2),
        Outgoing(key=b"", value=b"empty key", partition=2),
        Outgoing(key=b"\xffkey", value=None, partition=2),
    ]
    at.topics.produce(at.log.name, [*bad])
    lineage = Lineage.of(
        Original("orders", 0, 7, 1_700_000_000_000, "create", b"k", b"v", ()),
        wait_id=ids["null"], wait_partition=1, wait_offset=0, group="g", instance="i", delivery=2,
    )  # fmt: skip
    failure = Failure(Reason.FAILED, "ValueError", "no such thing", "trace", 1_700_000_001_000)
    letter = tuple(dead_letter_headers(AWKWARD_HEADERS[:4], lineage, failure))
    at.topics.produce(
        at.settings.dead_letter.topic,
        [
            Outgoing(key=None, value=b"", headers=letter, partition=0),
            Outgoing(key=b"foreign", value=None, headers=AWKWARD_HEADERS[:4], partition=1),
        ],
    )

    at.drain()

    rows = at.rows("select wait_expiration_uuid, original_key, body, original_headers from wait")
    found = {wait_id: (key, body, headers) for wait_id, key, body, headers in rows}
    assert found.keys() == set(ids.values())
    for name, value in VALUES.items():
        key, body, headers = found[ids[name]]
        assert (key, body) == (value and value[:99], value), name
        assert decode_headers_json(json.dumps(headers).encode()) == AWKWARD_HEADERS
    assert at.rows(
        "select original_partition, original_offset, original_headers, body, wait_expiration_time at time zone 'utc', "
        "consumer_group from wait where wait_expiration_uuid = %s",
        ids["older"],
    )[0][:4] == (4, None, [["a", "Yg=="]], b"older")
    quarantined = at.rows('select key, body, error from quarantine order by "offset"')
    assert [(key, body) for key, body, _ in quarantined] == [(record.key, record.value) for record in bad]
    assert "WAIT_EXPIRATION_TIME" in quarantined[0][2]
    letters = at.rows(
        "select reason, error_class, error_message, wait_expiration_uuid, wait_offset, delivery, key, body, headers "
        "from dead_letter order by partition",
    )
    ours, foreign = letters
    assert ours[:8] == ("failed", "ValueError", "no such thing", ids["null"], 0, 2, None, b"")
    assert foreign[:8] == (None, None, None, None, None, None, b"foreign", None)
    for row in letters:
        assert decode_headers_json(json.dumps(row[8]).encode()) == AWKWARD_HEADERS[:4]
    readable = at.rows("select body_encoding, original_headers from wait_readable")
    assert {encoding for encoding, _ in readable} == {None, "utf-8", "base64"}
    assert at.rows("select count(*) from dead_letter_readable") == [(2,)]


@pytest.mark.guarantee("P1.10", "P6.5")
def test_an_aborted_tombstone_resolves_nothing_and_markers_are_passed(sink_scenario: SinkScenarioFactory) -> None:
    at, resolved, open_one = sink_scenario(), new_id(), new_id()
    at.log.write(wait_record(resolved, 0), wait_record(open_one, 1))
    with transaction(at.topics, at.log.name, commit=True) as producer:
        producer.produce(at.log.name, key=resolved.encode(), value=None, partition=0)
        at.log.rows.pop(resolved)
    with transaction(at.topics, at.log.name, commit=False) as producer:
        producer.produce(at.log.name, key=open_one.encode(), value=None, partition=1)
    at.drain()
    assert at.is_exact()
    assert is_at_the_end(at)


@pytest.mark.guarantee("P6.12")
@pytest.mark.parametrize("together", [True, False], ids=["in one batch", "in batches of their own"])
def test_each_partition_of_an_id_counts_by_itself(sink_scenario: SinkScenarioFactory, together: bool) -> None:
    at, twice, strayed = sink_scenario(), new_id(), new_id()
    at.log.write(wait_record(twice, 0), wait_record(strayed, 0))
    if not together:
        at.drain()
    [_, (_, offset)] = at.log.write(tombstone(strayed, 1), wait_record(twice, 1))
    at.drain()
    found = rows_of(at.database, at.settings)
    assert found[strayed] == (0, 1), "a tombstone resolves what is open in its own partition"
    assert found[twice] == (1, offset), "one row per ID, and no error"
    at.log.write(tombstone(twice, 1), tombstone(strayed, 0))
    at.drain()
    assert rows_of(at.database, at.settings) == {}
    assert at.rows("select * from quarantine") == []
