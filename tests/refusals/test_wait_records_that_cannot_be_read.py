"""An unreadable wait record is kept whole with a reason, delays no other record and is never exported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sweeper.result import RowOutcome
from tests.integration.sweeper.conftest import ScenarioFactory
from tests.support.kafka_io import Outgoing
from tests.support.raw_headers import produce_with_header_name
from tests.support.wait_record_encoding import encode_wait_record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_malformed_wait_record_is_quarantined_and_others_are_exported(
    scenario: ScenarioFactory, spark: SparkSession
) -> None:
    from sink.service import SinkService

    at = scenario()
    wait_topic = at.settings.wait.topic
    first = at.register([at.wait_record(1)])
    bad = {
        "no headers": (),
        "no time": with_header(at.wait_record(2), "WAIT_EXPIRATION_TIME", b"tomorrow"),
        "headers no JSON": with_header(at.wait_record(3), "ORIGINAL_HEADERS", b"[[broken"),
        "headers no base64": with_header(at.wait_record(4), "ORIGINAL_HEADERS", b'[["name", "*"]]'),
        "not UTF-8": with_header(at.wait_record(5), "ORIGINAL_TOPIC", b"\xff\xfe"),
    }
    at.topics.produce(
        wait_topic, [Outgoing(b"body", b"00000000-0000-8000-8000-%012d" % n, h, 0) for n, h in enumerate(bad.values())]
    )
    produce_with_header_name(at.topics.bootstrap, wait_topic, b"\xff\xfe", b"unreadable name", key=b"odd")
    last = at.register([at.wait_record(6)])

    SinkService(at.settings, spark, once=True).run()
    rows = at.database.rows(at.settings, 'select "offset", error, body from quarantine order by "offset"')
    assert [offset for offset, _, _ in rows] == [1, 2, 3, 4, 5, 6]
    assert [body for _, _, body in rows] == [b"body"] * 5 + [b"unreadable name"]
    reasons = [str(error) for _, error, _ in rows]
    assert "WAIT_EXPIRATION_TIME" in reasons[1]
    assert "tomorrow" in reasons[1]
    assert "ORIGINAL_HEADERS" in reasons[2]
    assert all(reasons)
    progress = at.database.rows(at.settings, "select next_offset from sink_progress where topic = %s", wait_topic)
    assert progress == [(at.end(),)], "the position moves on"

    result = at.sweep()
    assert (result.counts[RowOutcome.EXPORTED], result.skip) == (2, None)
    assert at.dead_lettered_ids() == sorted(item.wait_id for item in (*first, *last))


def with_header(record: object, name: str, value: bytes) -> tuple[tuple[str, bytes | None], ...]:
    """Return a wait record's headers with one of them changed."""
    _, headers = encode_wait_record(record)  # type: ignore[arg-type]
    return tuple((key, value if key == name else old) for key, old in headers)
