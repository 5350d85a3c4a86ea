"""While a request has no answer, nothing that depends on it happens, however long that takes (P1, P2)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.processor.scenario import Counts, ProcessorScenario, ScenarioFactory, accepts, numbers
from tests.integration.processor.silence import Silence
from tests.support.tcp_proxy import FETCH, PRODUCE
from tests.support.waiting import wait_until

OFFSET_COMMIT = 8
RECORDS = 20


def with_records(processor_scenario: ScenarioFactory, handler: Any) -> ProcessorScenario:
    """Return a group whose topic has records; its requests are sent again if they get no answer in time."""
    at = processor_scenario(handler, 1, {"kafka.librdkafka": {"socket.timeout.ms": 4_000}})
    at.produce(numbers(RECORDS))
    return at


def wait_for_fetches(silence: Silence, count: int) -> None:
    """Wait until the processor has fetched this often; a fetch takes a tenth of a second, like a commit's pause."""
    begun = silence.requests[FETCH]
    wait_until(lambda: silence.requests[FETCH] >= begun + count, what=f"{count} more fetches")


@pytest.mark.guarantee("P2.2", "C.2")
@pytest.mark.fault("F41")
def test_nothing_is_committed_while_registrations_are_unanswered(processor_scenario: ScenarioFactory) -> None:
    at, silence = with_records(processor_scenario, accepts), Silence(PRODUCE)
    with silence.running(at) as running:
        wait_until(
            lambda: silence.requests[PRODUCE] and running.stats.consumed[at.topic] == RECORDS,
            what="the lost registration",
        )
        wait_for_fetches(silence, 10)
        assert silence.requests[OFFSET_COMMIT] == 1
        assert at.committed() == [0], "the beginning, which was committed before the first record"

        silence.lasts = False
        wait_until(lambda: running.done == RECORDS, what="all records")
        wait_until(lambda: at.committed() == [RECORDS], what="the commit")
        running.stop()


@pytest.mark.guarantee("P1.1")
@pytest.mark.fault("F42")
def test_no_handler_starts_while_the_first_commit_is_unanswered(processor_scenario: ScenarioFactory) -> None:
    """Otherwise a record that kills its process would be polled again indefinitely."""
    handler, silence = Counts(), Silence(OFFSET_COMMIT)
    with silence.running(with_records(processor_scenario, handler)) as running:
        wait_until(lambda: silence.requests[OFFSET_COMMIT] > 1, what="the lost commits")
        assert not (handler.calls or running.stats.registered), "the next owner wouldn't know"

        silence.lasts = False
        wait_until(lambda: running.done == RECORDS, what="all records")
        assert [offset for _, offset in handler.calls] == list(range(RECORDS))
        running.stop()
