"""A consumer that is being closed is asked for nothing by another thread: that ended clean stops with an error."""

from __future__ import annotations

import asyncio
import threading

import pytest
from confluent_kafka.admin import AdminClient

from processor.broker_link import BrokerLink
from processor.broker_watch import BrokerWatch
from processor.fault import Fault
from processor.membership import Membership
from wait_registry.clock import SystemClock
from wait_registry.kafka.cluster import TopicIdentity
from wait_registry.settings.processor import GroupProtocol, ProcessorSettings


@pytest.mark.parametrize(("protocol", "times"), [(GroupProtocol.CLASSIC, 0), (GroupProtocol.CONSUMER, 1)])
def test_the_member_id_is_asked_for_in_the_event_loops_thread_and_only_where_the_broker_must_be_asked(
    protocol: GroupProtocol, times: int
) -> None:
    asked_in: list[int] = []

    def member_id() -> str:
        asked_in.append(threading.get_ident())
        return ""

    async def watch_once() -> None:
        membership, fault = Membership(settings), Fault()
        membership.member_id = member_id
        admin = AdminClient({"bootstrap.servers": "127.0.0.1:1"})
        topic = TopicIdentity("wait", "id", 1)
        await BrokerWatch(admin, topic, membership, BrokerLink(fault), SystemClock(), fault).run_once()

    settings = ProcessorSettings(group="shop", group_protocol=protocol)
    asyncio.run(watch_once())
    assert asked_in == [threading.get_ident()] * times
