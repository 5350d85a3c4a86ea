"""P7, P8: a dead letter larger than the view takes stops no stream: it stays in its topic, and the view says where."""

from __future__ import annotations

import pytest

from tests.conftest import SettingsFactory
from tests.integration.sink.conftest import StartSink
from tests.support.database import Database
from tests.support.kafka_io import Outgoing, produce
from tests.support.topics import Topics

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
