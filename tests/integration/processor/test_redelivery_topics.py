"""A redelivery topic that is missing when a processor starts is consumed when it exists, without a restart."""

from __future__ import annotations

from collections import Counter

import pytest

from processor.intake import absent_topics
from tests.integration.processor.scenario import PROTOCOLS, ProcessorScenario, ScenarioFactory, accepts
from tests.support.committed_offsets import committed
from tests.support.kafka_io import Outgoing
from tests.support.waiting import wait_until
from wait_registry.errors import ConfigurationError
from wait_registry.handler import Record
from wait_registry.kafka.topics import create_topics
from wait_registry.records.lineage import Lineage, redelivery_headers


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(absent_topics, "LOOK_EVERY_S", 0.5)


def redelivered(at: ProcessorScenario, offset: int) -> Outgoing:
    """Return what a redrive sends of the dead letter of an input record."""
    first = "00000000-0000-8000-8000-000000000001"
    lineage = Lineage(at.topic, 7, offset, 1_700_000_000_000, "create", first, 1, 2, at.group, "i", 2)
    return Outgoing(b"again", b"key", redelivery_headers((), lineage))


@pytest.mark.guarantee("R1.10")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_topic_that_appears_is_consumed_from_its_beginning(
    protocol: str, processor_scenario: ScenarioFactory, caplog: pytest.LogCaptureFixture
) -> None:
    deliveries: Counter[tuple[int, int, int]] = Counter()

    async def counts(record: Record) -> None:
        deliveries[record.partition, record.offset, record.delivery] += 1

    at = processor_scenario(counts, 4, **PROTOCOLS[protocol])
    again = at.of_the_input_alone().again
    both = [at.start().wait_joined() for _ in range(2)]
    assert f"without READ for this user: {again}" in caplog.text
    written = at.produce_to_each(3)
    wait_until(lambda: sum(one.done for one in both) == written, what="the input's records")

    assert create_topics(at.settings) == [again]
    at.topics.produce(again, [redelivered(at, offset) for offset in range(5)])
    wait_until(lambda: sum(one.done for one in both) == written + 5, what="the redelivered records")
    written += at.produce_to_each(3)
    wait_until(lambda: sum(one.done for one in both) == written + 5, what="more of the input's records")
    for one in both:
        one.stop()
    assert set(deliveries.values()) == {1}
    assert committed(at.topics.bootstrap, at.group, again, 1) == [5]
    at.resolved_stories(written + 5)


def test_once_is_over_without_the_topic(processor_scenario: ScenarioFactory) -> None:
    at = processor_scenario(accepts, 1).of_the_input_alone()
    at.produce([b"value"])
    assert at.run_once().done == 1


def test_a_group_whose_policy_redelivers_needs_the_topic(processor_scenario: ScenarioFactory) -> None:
    at = processor_scenario(accepts, 1, expiry_policy="redeliver").of_the_input_alone()
    with pytest.raises(ConfigurationError, match="the redelivery topic is missing"):
        at.run_once()
