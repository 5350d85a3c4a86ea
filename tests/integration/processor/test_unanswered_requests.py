"""While a request has no answer, nothing that depends on it happens, however long that takes (P1, P2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.integration.processor.running import RunningProcessor
from tests.integration.processor.scenario import ProcessorScenario, ScenarioFactory, numbers
from tests.support.tcp_proxy import Fate, KafkaProxy
from tests.support.waiting import wait_until
from wait_registry.handler import Record

PRODUCE, FETCH, OFFSET_COMMIT = 0, 1, 8
RECORDS = 20


class Unanswered:
    """A processor behind a proxy that loses all requests of one kind until it is stopped."""

    def __init__(self, api: int, processor_scenario: ScenarioFactory) -> None:
        self.api = api
        self.losing = True
        self.requests: Counter[int] = Counter()
        self.started: list[int] = []
        # A request without an answer fails after this time, and is sent again.
        librdkafka = {"socket.timeout.ms": 4_000}
        self.at: ProcessorScenario = processor_scenario(self.handle, 1, {"kafka.librdkafka": librdkafka})
        self.at.produce(numbers(RECORDS))

    def decide(self, api: int) -> Fate:
        self.requests[api] += 1
        return Fate.LOSE_REQUEST if self.losing and api == self.api else Fate.PASS

    async def handle(self, record: Record) -> None:
        self.started.append(record.offset)

    @contextmanager
    def running(self) -> Iterator[tuple[RunningProcessor, KafkaProxy]]:
        with KafkaProxy(self.at.topics.bootstrap, self.decide) as proxy:
            running = self.at.start(proxy.bootstrap_servers)
            try:
                yield running, proxy
            finally:  # it leaves the group through the proxy
                self.losing = False
                running.stop()

    def wait_for_fetches(self, count: int) -> None:
        """Wait until the processor has fetched this often; a fetch takes a tenth of a second, like a commit's pause."""
        begun = self.requests[FETCH]
        wait_until(lambda: self.requests[FETCH] >= begun + count, what=f"{count} more fetches")


@pytest.mark.guarantee("P2.2", "C.2")
@pytest.mark.fault("F41")
def test_nothing_is_committed_while_registrations_are_unanswered(processor_scenario: ScenarioFactory) -> None:
    produce = Unanswered(PRODUCE, processor_scenario)
    at = produce.at
    with produce.running() as (running, proxy):
        wait_until(
            lambda: proxy.lost.is_set() and running.stats.consumed[at.topic] == RECORDS, what="the lost registration"
        )
        produce.wait_for_fetches(10)
        assert produce.requests[OFFSET_COMMIT] == 0
        assert at.committed() == [-1]

        produce.losing = False
        wait_until(lambda: running.done == RECORDS, what="all records")
        wait_until(lambda: at.committed() == [RECORDS], what="the commit")


@pytest.mark.guarantee("P1.1")
@pytest.mark.fault("F42")
def test_no_handler_starts_while_the_first_commit_is_unanswered(processor_scenario: ScenarioFactory) -> None:
    """Otherwise a record that kills its process would be polled again indefinitely."""
    commit = Unanswered(OFFSET_COMMIT, processor_scenario)
    with commit.running() as (running, proxy):
        wait_until(lambda: proxy.lost.is_set() and running.stats.registered == RECORDS, what="the lost commit")
        commit.wait_for_fetches(5)
        assert commit.started == []

        commit.losing = False
        wait_until(lambda: running.done == RECORDS, what="all records")
        assert commit.started == list(range(RECORDS))
