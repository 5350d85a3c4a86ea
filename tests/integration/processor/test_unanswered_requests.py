"""While a request has no answer, nothing that depends on it happens, however long that takes (P1, P2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.integration.processor.running import Processors, RunningProcessor
from tests.support.committed_offsets import committed
from tests.support.settings import with_broker
from tests.support.tcp_proxy import Fate, KafkaProxy
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.handler import Record
from wait_registry.settings.root import Settings

PRODUCE, FETCH, OFFSET_COMMIT = 0, 1, 8
RECORDS = 20


class Unanswered:
    """A processor behind a proxy that loses all requests of one kind until it is told to stop."""

    def __init__(self, api: int) -> None:
        self.api = api
        self.losing = True
        self.requests: Counter[int] = Counter()
        self.started: list[int] = []

    def decide(self, api: int) -> Fate:
        self.requests[api] += 1
        return Fate.LOSE_REQUEST if self.losing and api == self.api else Fate.PASS

    async def handle(self, record: Record) -> None:
        self.started.append(record.offset)

    @contextmanager
    def running(
        self, settings: Settings, topics: Topics, processors: Processors
    ) -> Iterator[tuple[RunningProcessor, KafkaProxy]]:
        with KafkaProxy(topics.bootstrap, self.decide) as proxy:
            running = processors.start(with_broker(settings, proxy.bootstrap_servers))
            try:
                yield running, proxy
            finally:  # it leaves the group through the proxy
                self.losing = False
                running.stop()

    def wait_for_fetches(self, count: int) -> None:
        """Wait until the processor has fetched this often; a fetch takes a tenth of a second, like a commit's pause."""
        begun = self.requests[FETCH]
        wait_until(lambda: self.requests[FETCH] >= begun + count, 60, f"{count} more fetches")


@pytest.fixture
def settings_for(processor_settings: Callable[..., Settings], processors: Processors) -> Callable[..., Settings]:
    def made(unanswered: Unanswered) -> Settings:
        # A request without an answer fails after this time, and is sent again.
        librdkafka = {"socket.timeout.ms": 4_000}
        handler = processors.handler(unanswered.handle)
        return processor_settings({"processor.handler": handler, "kafka.librdkafka": librdkafka}, 1)

    return made


@pytest.mark.guarantee("P2.2", "C.2")
@pytest.mark.fault("F41")
def test_nothing_is_committed_while_registrations_are_unanswered(
    settings_for: Callable[[Unanswered], Settings], topics: Topics, processors: Processors
) -> None:
    produce = Unanswered(PRODUCE)
    settings = settings_for(produce)
    topic, group = settings.processor.topics[0], settings.processor.group
    topics.produce(topic, [b"%d" % number for number in range(RECORDS)])
    with produce.running(settings, topics, processors) as (running, proxy):
        wait_until(
            lambda: proxy.lost.is_set() and running.stats.consumed[topic] == RECORDS, 60, "the lost registration"
        )
        produce.wait_for_fetches(10)
        assert produce.requests[OFFSET_COMMIT] == 0
        assert committed(topics.bootstrap, group, topic, 1) == [-1]

        produce.losing = False
        wait_until(lambda: running.done == RECORDS, 60, "all records")
        wait_until(lambda: committed(topics.bootstrap, group, topic, 1) == [RECORDS], 60, "the commit")


@pytest.mark.guarantee("P1.1")
@pytest.mark.fault("F42")
def test_no_handler_starts_while_the_first_commit_is_unanswered(
    settings_for: Callable[[Unanswered], Settings], topics: Topics, processors: Processors
) -> None:
    """Otherwise a record that kills its process would be polled again indefinitely."""
    commit = Unanswered(OFFSET_COMMIT)
    settings = settings_for(commit)
    topics.produce(settings.processor.topics[0], [b"%d" % number for number in range(RECORDS)])
    with commit.running(settings, topics, processors) as (running, proxy):
        wait_until(lambda: proxy.lost.is_set() and running.stats.registered == RECORDS, 60, "the lost commit")
        commit.wait_for_fetches(5)
        assert commit.started == []

        commit.losing = False
        wait_until(lambda: running.done == RECORDS, 60, "all records")
        assert commit.started == list(range(RECORDS))
