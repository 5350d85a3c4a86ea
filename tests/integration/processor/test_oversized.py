"""Records too large for the wait topic or the dead letter topic: nothing is lost, and nothing stops."""

from __future__ import annotations

import os

import pytest

from tests.integration.processor.scenario import ScenarioFactory
from tests.support.kafka_io import Outgoing
from tests.support.waiting import wait_until
from wait_registry.handler import PermanentError, Record
from wait_registry.telemetry.metrics import PROCESSOR_REFUSED

LARGE = 3_000_000
HUGE = 70_000_000
ANY_SIZE = {"max__message__bytes": str(90_000_000)}


@pytest.mark.guarantee("P1.36")
def test_a_dead_letter_that_is_too_large_holds_the_offset(
    processor_scenario: ScenarioFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("processor.settlement.refused_letters.AGAIN_S", 0.5)

    async def refuses_the_large(record: Record) -> None:
        if len(record.value or b"") == LARGE:
            raise PermanentError("no")

    at = processor_scenario(refuses_the_large, 1, topic_config=ANY_SIZE, registration="off")
    at.produce([b"before", os.urandom(LARGE), b"after", b"last"])
    running = at.start()
    wait_until(lambda: running.done == 3, what="the others")
    wait_until(lambda: running.values(PROCESSOR_REFUSED) == [1], what="the record that holds the offset")
    assert any("hold their offsets" in reason for reason in running.health.reasons)
    wait_until(lambda: at.committed() == [1], what="the commit up to it")
    at.topics.configure(at.settings.dead_letter.topic, "max.message.bytes", str(2 * LARGE))
    wait_until(lambda: at.committed() == [4], what="the commit behind the dead letter")
    running.stop()
    [letter] = at.letters()
    assert len(letter.value or b"") == LARGE


@pytest.mark.guarantee("P1.37")
@pytest.mark.parametrize("registration", ["eager", "deferred"])
def test_what_cannot_be_registered_is_called_if_it_may_hold_the_offset(
    registration: str, processor_scenario: ScenarioFactory
) -> None:
    sizes: list[int] = []

    async def handler(record: Record) -> None:
        sizes.append(len(record.value or b""))

    at = processor_scenario(handler, 1, topic_config=ANY_SIZE, registration=registration, oversized="hold")
    at.produce([b"before", os.urandom(LARGE), b"after"])
    at.run_once()
    assert sorted(sizes) == [5, 6, LARGE]
    assert at.committed() == [3]
    assert at.letters() == []
    assert {story.origin[2] for story in at.stories().values()} == {0, 2}


def test_a_record_beyond_the_clients_limit_is_handled(processor_scenario: ScenarioFactory) -> None:
    sizes: list[int] = []

    async def handler(record: Record) -> None:
        sizes.append(len(record.value or b""))

    at = processor_scenario(handler, 1, topic_config=ANY_SIZE, registration="off")
    at.produce([Outgoing(b"before", None), Outgoing(bytes(HUGE), None), Outgoing(b"after", None)])
    at.run_once()
    assert sizes == [6, HUGE, 5]
    assert at.committed() == [3]
