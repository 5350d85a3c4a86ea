"""What a reconciliation reads of a wait topic that holds anything: the registrations, and no traceback."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.integration.sink.wait_topic import new_id, tombstone, wait_record
from tests.support.kafka_io import Outgoing
from tests.support.raw_headers import produce_with_header_name
from tests.support.topics import Topics
from wait_registry.demo.evidence import read_wait_log
from wait_registry.records import names
from wait_registry.settings.root import Settings

GROUP = "billing"


def test_malformed_wait_records_register_nothing(settings_for: Callable[..., Settings], topics: Topics) -> None:
    settings = settings_for()
    topics.create_own(settings)
    topic = settings.wait.topic
    good = wait_record(new_id(), 0)
    assert isinstance(good.key, bytes)
    key = good.key.decode("ascii")
    bad = [
        replace(good, key=new_id().encode(), headers=((names.WAIT_GROUP, GROUP.encode()),)),
        replace(good, key=new_id().encode(), headers=(*good.headers, (names.ORIGINAL_PARTITION, b"none"))),
        replace(good, key=new_id().encode(), headers=(*good.headers, (names.ORIGINAL_TOPIC, b"\xff"))),
        replace(good, key=b"\xff"),
        Outgoing(None, b"\xff\xfe", ((names.WAIT_OUTCOME, b"\xff"),), 0),
    ]
    topics.produce(topic, [*bad, good, tombstone(key, 0)])
    produce_with_header_name(topics.bootstrap, topic, b"\xff\xfe", b"unreadable name", key=b"odd")

    read = list(read_wait_log(settings, GROUP))
    assert [(entry.wait_id, entry.original) for entry in read if entry.original is not None] == [
        (key, ("orders", 3, 41))
    ]
    assert sorted(entry.outcome or "" for entry in read if entry.original is None) == ["", "done"]
