"""A processor that has just been started and gets no partitions yet says once what it waits for."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from processor.broker_connection import BrokerConnection
from processor.broker_watch import LOG_WAITING_S, BrokerWatch
from processor.consumed_topics import ConsumedTopics
from processor.ending import Fault
from processor.membership import Membership
from tests.unit.processor.parts import HaltedClock
from wait_registry.kafka.cluster import TopicIdentity
from wait_registry.settings.processor import ProcessorSettings


class _Watched:
    """A watch that has nothing to ask the broker."""

    def __init__(self) -> None:
        self.clock, fault = HaltedClock(), Fault()
        self.membership, self.connection = Membership(ProcessorSettings()), BrokerConnection(fault)
        nobody: Any = None
        wait_topic, consumed = TopicIdentity("wait", "id", 1), ConsumedTopics("group", {})
        self.watch = BrokerWatch(
            nobody, wait_topic, consumed, self.membership, None, nobody, self.connection, self.clock, fault
        )

    def look_after(self, seconds: float) -> None:
        self.clock.now_s += seconds
        asyncio.run(self.watch.run_once())


def _told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line for line in caplog.messages if "waiting for the group" in line]


def test_waiting_for_partitions_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    watched = _Watched()
    watched.look_after(LOG_WAITING_S - 1)
    assert _told(caplog) == []
    watched.look_after(1)
    watched.look_after(1)
    [line] = _told(caplog)
    assert line.startswith("no partitions for 5 s")
    assert "session.timeout.ms" in line


def test_a_member_that_has_its_place_waits_for_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    watched = _Watched()
    watched.membership.joined = True
    watched.look_after(LOG_WAITING_S)
    assert _told(caplog) == []
