"""The consumer's own thread may wait for the event loop, so the loop must never wait for the consumer meanwhile (P8).

While one thread is within a call of the client, every other thread's call waits until it returns. A rebalance callback
within that call waits for the event loop: had the loop made a call by then, both would wait indefinitely.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from processor.group_consumer import GroupConsumer
from tests.integration.processor.running import Processors
from tests.support.settings import with_broker
from tests.support.tcp_proxy import Fate, KafkaProxy
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.handler import Record
from wait_registry.settings.root import Settings

OFFSET_COMMIT = 8
PATIENCE_S = 60.0
LOOP_ANSWERS_WITHIN_S = 10.0


async def done(record: Record) -> None:
    """Accept everything."""


@pytest.fixture
def callbacks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Have the answer of a commit that comes in the consumer's thread wait for the loop, as a rebalance would there.

    Yields whether the loop answered, for each.
    """
    answered: list[bool] = []
    original = GroupConsumer.on_commit

    def on_commit(self: GroupConsumer, *answer: Any) -> None:
        original(self, *answer)
        if threading.get_ident() != self._loop_thread:
            reached = threading.Event()
            self._loop.call_soon_threadsafe(reached.set)
            answered.append(reached.wait(LOOP_ANSWERS_WITHIN_S))

    monkeypatch.setattr(GroupConsumer, "on_commit", on_commit)
    yield answered


@pytest.mark.guarantee("P8.20")
def test_a_rebalance_during_the_warm_up_is_answered(
    processor_settings: Callable[..., Settings],
    topics: Topics,
    processors: Processors,
    callbacks: list[bool],
) -> None:
    more_registered = threading.Event()

    def decide(api: int) -> Fate:
        if api == OFFSET_COMMIT:
            more_registered.wait(PATIENCE_S)
        return Fate.PASS

    settings = processor_settings({"processor.handler": processors.handler(done), "processor.max_in_flight": 50}, 1)
    topic = settings.processor.topics[0]
    topics.produce(topic, [b"first"])
    with KafkaProxy(topics.bootstrap, decide) as proxy:
        running = processors.start(with_broker(settings, proxy.bootstrap_servers))
        try:
            wait_until(lambda: running.stats.registered == 1, what="the first registration")
            topics.produce(topic, [b"%d" % number for number in range(5)])
            wait_until(lambda: running.stats.registered == 6, what="registrations that wait for a commit of their own")
            more_registered.set()
            wait_until(lambda: running.done == 6, what="all records")
        finally:
            more_registered.set()
            running.stop()
    assert callbacks, "the answer came while the consumer's thread polled"
    assert all(callbacks)
