"""P6, P8: a client that may write to the wait topic or a dead letter topic can write anything and stops no service.

Each record here is one that a client can send and the broker takes. All of them are shown, as rows or in quarantine,
the positions move on, and what has expired among them is exported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from hashlib import shake_256
from typing import TYPE_CHECKING

import pytest

from sweeper.result import RowOutcome
from tests.integration.sweeper.conftest import ScenarioFactory
from tests.integration.sweeper.scenario import Scenario
from tests.support.kafka_io import Headers, Outgoing, produce
from tests.support.raw_headers import produce_with_header_name
from tests.support.wait_record_encoding import encode_wait_record
from wait_registry.records import header_names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MANY = 100_000
LONG = 200_000


def bad_keys() -> Iterator[bytes]:
    """Yield keys that are no wait ids."""
    yield from (b"", b"\xff\xfe", b"\xff" * 36, b"\x00" * 36, b"k" * 1_500_000)
    yield b"019FC448-D29B-8ABC-9DEF-0123456789AB"


def bad_headers() -> Iterator[tuple[str, bytes | None]]:
    """Yield headers, each of which makes a wait record unreadable."""
    for time in (b"infinity", b"+294277-01-01T00:00:00Z", b"-0001-01-01T00:00:00Z", b"0" * LONG, b"\xff", None):
        yield header_names.WAIT_EXPIRATION_TIME, time
    yield header_names.ORIGINAL_OFFSET, b"9223372036854775808"
    yield header_names.ORIGINAL_PARTITION, b"2147483648"
    yield header_names.ORIGINAL_TIMESTAMP, b"-9223372036854775809"
    yield header_names.WAIT_DELIVERY, b"9" * LONG
    yield header_names.WAIT_MAX_DELIVERIES, b"0"
    yield header_names.WAIT_GROUP, b"a\x00b"
    yield header_names.ORIGINAL_TOPIC, b"\xed\xa0\x80"
    yield header_names.ORIGINAL_TOPIC, b"\xff\xfe"
    yield header_names.WAIT_EXPIRATION_TIME, b"tomorrow"
    for document in (
        b"[[broken",
        b'[["name", "*"]]',
        b"[" * LONG,
        b"[" * (LONG // 2) + b"]" * (LONG // 2),
        b"[" + b"[]," * (LONG // 3) + b"[]]",
        b'{"name":' * (LONG // 8),
        b"[1" + b"0" * LONG + b"]",
        b'[["\\ud800",null]]',
        b'{"a":"1","a":{}}',
        b"\xef\xbb\xbf[]",
    ):
        yield header_names.ORIGINAL_HEADERS, document


def odd_headers() -> Iterator[tuple[str, bytes | None]]:
    """Yield headers that a wait record may well have."""
    yield header_names.WAIT_EXPIRATION_TIME, b"0001-01-01T00:00:00Z"
    yield header_names.WAIT_EXPIRATION_TIME, b"0001-01-01T00:00:00.000Z"
    yield header_names.ORIGINAL_TIMESTAMP, b"-9223372036854775808"
    yield header_names.ORIGINAL_TIMESTAMP, b"9223372036854775807"
    yield header_names.WAIT_GROUP, b"g" * 40_000
    yield header_names.WAIT_DELIVERY, b"2147483647"
    yield header_names.ORIGINAL_HEADERS, b"[" + b'["n",""],' * (MANY // 10) + b'["n",null]]'
    yield header_names.ORIGINAL_HEADERS, b'{"":"","a":"\\u0000"}'
    yield header_names.TRACEPARENT, b"\xff" * 100


def unsendable_headers() -> Iterator[tuple[str, bytes | None]]:
    """Yield headers of wait records that can be read, and not exported."""
    yield header_names.WAIT_DEAD_LETTER_TOPIC, b"x" * 40_000
    yield header_names.WAIT_DEAD_LETTER_TOPIC, b"../x"
    yield header_names.ORIGINAL_HEADERS, b'[["a\\u0000",null]]'


def letters() -> Iterator[Outgoing]:
    """Yield records of a dead letter topic that no service of ours wrote, or that nearly look so."""
    yield Outgoing(None)
    yield Outgoing(b"\xff\x00" * 10, b"\xff" * LONG, (("\x00", b"\x00"), ("", None)))
    yield Outgoing(b"value", b"key", MANY * (("h", None),))
    # The last is more than Spark can count. Topics of ours take the broker's time, whatever a record says.
    for timestamp_ms in (1, -5, -(2**62)):
        yield Outgoing(b"value", timestamp_ms=timestamp_ms)
    block = [
        (header_names.WAIT_LINEAGE, b"0"),
        (header_names.ORIGINAL_TOPIC, b"x" * 40_000),
        (header_names.WAIT_EXPIRATION_UUID, b"00000000-0000-8000-8000-000000000001"),
        (header_names.ORIGINAL_TIMESTAMP, b"9223372036854775807"),
        (header_names.DLQ_REASON, b"expired"),
        (header_names.DLQ_ERROR_MESSAGE, b"\x00\xff" * (LONG // 2)),
        (header_names.DLQ_TIME, b"0001-01-01T00:00:00Z"),
    ]
    yield Outgoing(b"value", None, block)
    yield Outgoing(b"value", None, [*block, (header_names.DLQ_TIME, b"infinity")])
    # Longer than a B-tree takes, also compressed.
    long = shake_256(b"").hexdigest(20_000).encode()
    yield Outgoing(b"value", None, [*block, (header_names.WAIT_GROUP, long), (header_names.DLQ_ERROR_CLASS, long)])
    yield Outgoing(bytes(2 * 2_097_152), b"larger than the topic takes uncompressed")


@pytest.mark.guarantee("P8.14")
@pytest.mark.timeout(600)
def test_no_record_of_the_wait_topic_stops_sink_or_sweeper(scenario: ScenarioFactory, spark: SparkSession) -> None:
    from sink.service import SinkService

    at = scenario()
    wait_topic = at.settings.wait.topic
    good = at.register([at.wait_record(1)])
    bad = [Outgoing(b"body", key, (), 0) for key in (b"00000000-0000-8000-8000-000000000009", *bad_keys())]
    bad += [with_header(at, number, header) for number, header in enumerate(bad_headers(), 10)]
    odd = [with_header(at, number, header) for number, header in enumerate(odd_headers(), 50)]
    unsendable = [with_header(at, number, header) for number, header in enumerate(unsendable_headers(), 90)]
    resolving = [
        Outgoing(None, b"\xff" * 36, (), 0),
        Outgoing(None, b"00000000-0000-8000-8000-000000009999", MANY * (("h", b""),), 0),
        Outgoing(None, b"00000000-0000-8000-8000-000000009998", ((header_names.WAIT_OUTCOME, b"\xff\x00"),), 0),
    ]
    produce(at.topics.bootstrap, wait_topic, [*bad, *odd, *unsendable, *resolving], compression="zstd")
    produce_with_header_name(at.topics.bootstrap, wait_topic, b"\xff\xfe", b"unreadable name", key=b"odd")
    good += at.register([at.wait_record(2)])

    foreign = [replace(letter, partition=0) for letter in letters()]
    produce(at.topics.bootstrap, at.settings.dead_letter.topic, foreign, compression="zstd")

    SinkService(at.settings, spark, once=True).run()
    progress = at.database.rows(
        at.settings, "select next_offset from sink_progress where topic = %s", at.settings.wait.topic
    )
    assert progress == [(at.end(),)], "the position moves on"
    quarantined = at.database.rows(at.settings, 'select body, error from quarantine order by "offset"')
    assert [body for body, _ in quarantined] == [*(record.value for record in bad), None, b"unreadable name"]
    assert all(0 < len(str(error)) < 2_100 for _, error in quarantined)
    assert [error for _, error in quarantined if header_names.WAIT_EXPIRATION_TIME in error and "tomorrow" in error]
    rows = at.database.rows(at.settings, "select wait_expiration_uuid from wait")
    assert len(rows) == len([*odd, *unsendable, *good])

    shown = at.database.rows(at.settings, "select reason, count(*) from dead_letter group by reason order by reason")
    assert shown == [("expired", 2), (None, len(foreign) - 2)]

    result = at.sweep()
    assert (result.skip, result.counts[RowOutcome.UNSENDABLE]) == (None, len(unsendable))
    assert result.counts[RowOutcome.EXPORTED] == len([*odd, *good])
    exported = {dict(letter.headers).get(header_names.WAIT_EXPIRATION_UUID) for letter in at.dead_letters()}
    assert {item.wait_id.encode() for item in good} <= exported
    assert len(repr(result)) < 10_000


def with_header(at: Scenario, number: int, header: tuple[str, bytes | None]) -> Outgoing:
    """Return an expired wait record with one header changed, or one more."""
    record = at.wait_record(number)
    value, headers = encode_wait_record(record)
    changed: Headers = (*(pair for pair in headers if pair[0] != header[0]), header)
    return Outgoing(value, record.wait_id.encode(), changed, 0)
