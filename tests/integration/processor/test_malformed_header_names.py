"""The client can't read a header name that isn't UTF-8: such a record is dead-lettered, not skipped."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.integration.processor.running import Processors
from tests.integration.processor.wait_topic import stories
from tests.support.committed_offsets import committed
from tests.support.raw_headers import produce_with_header_name
from tests.support.topics import Topics
from wait_registry.handler import Record
from wait_registry.settings.root import Settings


@pytest.mark.guarantee("P5.5")
def test_such_a_record_is_dead_lettered_as_malformed(
    processor_settings: Callable[..., Settings], topics: Topics, processors: Processors
) -> None:
    handled: list[bytes | None] = []

    async def handle(record: Record) -> None:
        handled.append(record.value)

    settings = processor_settings({"processor.handler": processors.handler(handle)}, 1)
    topic = settings.processor.topics[0]
    # Many, so that CPython has specialised its calls by the time that the unreadable one comes.
    topics.produce(topic, [b"before"] * 200)
    produce_with_header_name(topics.bootstrap, topic, b"\xff\xfe", b"unreadable")
    topics.produce(topic, [b"after"])
    processors.run_once(settings)

    assert sorted(map(bytes, filter(None, handled))) == [b"after", *[b"before"] * 200]
    [letter] = topics.read(settings.dead_letter.topic)
    assert (letter.text("DLQ_REASON"), letter.value) == ("malformed", b"unreadable")
    assert f"{topic}[0] offset 200" in letter.text("DLQ_ERROR_MESSAGE")
    assert committed(topics.bootstrap, settings.processor.group, topic, 1) == [202]
    assert sorted(origin[2] for origin in stories(topics.read(settings.wait.topic))) == [*range(200), 201]
