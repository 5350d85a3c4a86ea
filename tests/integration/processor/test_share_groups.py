"""The experimental source: a share group (KIP-932) on the real broker, whose acknowledgments another member sees."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import AcknowledgeType, Message, ShareConsumer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from tests.integration.processor.scenario import Counts, Gate, ProcessorScenario, ScenarioFactory, accepts
from tests.support.waiting import wait_until
from wait_registry.errors import ConfigurationError
from wait_registry.handler import Record

SHARE: dict[str, Any] = {"source": "share", "registration": "off", "handler_timeout_s": 5.0, "max_attempts": 1}
GROUP = {"share.auto.offset.reset": "earliest", "share.isolation.level": "read_committed"}


def configure(at: ProcessorScenario, config: dict[str, str]) -> None:
    """Configure the group, and wait until the broker has applied it."""
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in config.items()]
    resource = ConfigResource(ResourceType.GROUP, at.group, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": at.topics.bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(60)

    def shown() -> bool:
        asked = ConfigResource(ResourceType.GROUP, at.group)
        found = admin.describe_configs([asked])[asked].result(60)
        return all(found[name].value == value for name, value in config.items())

    wait_until(shown, 120, "the group's configuration")


class Member:
    """Another member of the share group."""

    def __init__(self, at: ProcessorScenario) -> None:
        config = {"bootstrap.servers": at.topics.bootstrap, "group.id": at.group}
        self._consumer = ShareConsumer({**config, "share.acknowledgement.mode": "explicit"})
        self._consumer.subscribe([at.topic])

    def polled(self, acknowledgment: AcknowledgeType) -> list[Message]:
        """Poll until records come, acknowledge them, and return them."""
        found: list[Message] = []

        def come() -> bool:
            found.extend(message for message in self._consumer.poll(1) if message.error() is None)
            return bool(found)

        wait_until(come, 120, "records for the other member")
        for message in found:
            self._consumer.acknowledge(message, acknowledgment)
        return found

    def close(self) -> None:
        self._consumer.close()


@pytest.fixture
def share_scenario(processor_scenario: ScenarioFactory) -> Callable[..., ProcessorScenario]:
    """Make a scenario whose group is configured."""

    def make(handler: Any = accepts, **own: Any) -> ProcessorScenario:
        at = processor_scenario(handler, 1, **{**SHARE, **own})
        configure(at, GROUP)
        return at

    return make


def test_each_record_is_settled_once_and_the_group_gets_none_again(share_scenario: Any) -> None:
    calls = Counts()

    async def handle(record: Record) -> None:
        await calls(record)
        if record.offset == 7:
            raise ValueError("no")

    at = share_scenario(handle)
    at.produce([b"%d" % number for number in range(20)])
    running = at.start()
    wait_until(lambda: sum(running.settled.values()) == 20, what="the first batch")
    at.produce([b"%d" % number for number in range(20, 30)])
    wait_until(lambda: sum(running.settled.values()) == 30, what="a later batch")
    running.stop()
    assert running.settled["dead_lettered"] == 1
    assert set(calls.calls.values()) == {1}
    assert [letter.value for letter in at.letters()] == [b"7"]
    assert at.topics.read(at.settings.wait.topic) == []
    at.produce([b"last"])
    other = Member(at)
    assert [message.value() for message in other.polled(AcknowledgeType.ACCEPT)] == [b"last"]
    other.close()


def test_a_released_record_comes_again_with_the_brokers_delivery_count(share_scenario: Any) -> None:
    seen: list[tuple[int, int]] = []

    async def handle(record: Record) -> None:
        seen.append((record.offset, record.delivery))

    at = share_scenario(handle)
    at.produce([b"a", b"b"])
    other = Member(at)
    assert {message.delivery_count() for message in other.polled(AcknowledgeType.RELEASE)} == {1}
    other.close()
    running = at.start()
    wait_until(lambda: running.done == 2, what="both records")
    running.stop()
    assert seen == [(0, 2), (1, 2)]


def test_a_stop_releases_what_is_not_settled(share_scenario: Any) -> None:
    gate = Gate(free=1)
    at = share_scenario(gate, flush_timeout_s=0.2, drain_timeout_s=1.0)
    at.produce([b"a", b"b"])
    running = at.start()
    wait_until(lambda: len(gate.calls) == 2, what="both calls")
    running.stop()
    other = Member(at)
    again = other.polled(AcknowledgeType.ACCEPT)
    assert [(message.offset(), message.delivery_count()) for message in again] == [(1, 2)]
    other.close()


def test_a_record_that_outlasts_its_lease_goes_to_another_member(share_scenario: Any) -> None:
    gate = Gate()

    async def handle(record: Record) -> None:
        if record.offset == 0:
            await asyncio.Event().wait()  # until its limit, for which the next record waits
        if record.offset == 1:
            await gate(record)

    at = share_scenario(handle, max_in_flight=1, handler_timeout_s=10.0)
    configure(at, {"share.record.lock.duration.ms": "15000"})
    at.produce([b"a", b"b"])
    running = at.start()
    wait_until(lambda: len(gate.calls) == 1, what="the call that begins 10 s after its lease")
    other = Member(at)
    (again,) = other.polled(AcknowledgeType.ACCEPT)
    assert again.offset() == 1
    assert again.delivery_count() >= 2
    other.close()
    gate.opened.set()
    done = running.done
    at.produce([b"c"])
    wait_until(lambda: running.done > done, what="the next batch")
    running.stop()
    assert at.letters()[0].value == b"a"


@pytest.mark.parametrize(
    ("own", "once", "named"),
    [({"handler_timeout_s": 60.0}, False, "share.record.lock.duration.ms"), ({}, True, "--once needs offsets")],
)
def test_what_a_lease_cannot_do_is_refused(own: dict[str, Any], once: bool, named: str, share_scenario: Any) -> None:
    running = share_scenario(**own).start(once=once)
    with pytest.raises(ConfigurationError, match=named):
        running.join()


def test_the_start_says_what_is_not_promised(share_scenario: Any, caplog: pytest.LogCaptureFixture) -> None:
    at = share_scenario()
    with caplog.at_level(logging.INFO):
        at.start().wait_joined().stop()
    assert "P1, O1 and D1 of docs/guarantees.md aren't promised" in caplog.text
    assert "share.auto.offset.reset=earliest" in caplog.text
