"""Strategy ``batch``: a dead letter that the client refuses at once ends the process before the offset is committed."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from tests.integration.processor.running import Processors
from tests.support.committed_offsets import committed
from tests.support.kafka_io import Outgoing
from tests.support.topics import Topics
from wait_registry.errors import PermanentError
from wait_registry.handler import Record
from wait_registry.kafka import clients
from wait_registry.settings.root import Settings


async def refuse(record: Record) -> None:
    """Give up on everything."""
    raise PermanentError("not this one")


def test_no_offset_passes_a_record_that_could_be_kept_nowhere(
    processor_settings: Callable[..., Settings],
    topics: Topics,
    processors: Processors,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = processor_settings({"processor.handler": processors.handler(refuse), "processor.strategy": "batch"}, 1)
    topic, group = settings.processor.topics[0], settings.processor.group
    topics.produce(topic, [Outgoing(os.urandom(60_000))])
    # The producer refuses it in produce() itself: no delivery report will tell.
    monkeypatch.setattr(clients, "PRODUCER_MAX_MESSAGE_BYTES", 20_000)
    running = processors.start(settings)
    with pytest.raises(PermanentError, match="writing the dead letter"):
        running.join()
    assert committed(topics.bootstrap, group, topic, 1)[0] <= 0
