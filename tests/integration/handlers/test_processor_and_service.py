"""A processor whose handler is a gRPC service that restarts in mid-work."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from grpc import aio

from tests.conftest import SettingsFactory
from tests.integration.processor.wait_topic import stories
from tests.support.grpc_service import serving
from tests.support.processes import Services
from tests.support.topics import Topics
from waitreg.local.ports import LOOPBACK, free_ports

RECORDS = 1000
PATIENT = {
    "processor.max_in_flight": 20,
    "processor.max_attempts": 100,
    "processor.backoff_max_s": 0.5,
    "processor.handler_timeout_s": 10,
    "processor.ttl_s": 7200,
}


async def test_every_record_is_done_once_although_the_service_restarts(
    prepared: SettingsFactory, topics: Topics, services: Services
) -> None:
    [port] = free_ports(1)
    settings = prepared({**PATIENT, "processor.handler": f"grpc://{LOOPBACK}:{port}"}, 2)
    topics.produce(settings.processor.topics[0], [b"%d" % number for number in range(RECORDS)])
    done, held, all_held = set[bytes](), list[Any](), asyncio.Event()

    async def held_in_the_end(record: Any, context: aio.ServicerContext) -> bytes:
        if len(done) >= 200:
            held.append(record)
            if len(held) == 20:
                all_held.set()
            await asyncio.get_running_loop().create_future()
        done.add(record.value)
        return b""

    processor = services.start("processor", settings, "--once")
    async with serving(held_in_the_end, port=port) as first:
        await asyncio.wait_for(all_held.wait(), 180)
    async with serving(port=port) as second:
        assert await asyncio.to_thread(processor.wait) == 0, processor.log.read_text("utf-8")
    found = stories(topics.read(settings.wait.topic)).values()
    assert Counter(tuple(story.outcomes) for story in found) == {("done",): RECORDS}
    assert topics.read(settings.dead_letter.topic) == []
    assert done | {one.value for one in second.requests} == {b"%d" % number for number in range(RECORDS)}
    attempts = Counter(one.attempt > 1 for one in second.requests)
    assert attempts[True] == 20, "those that the first service held"
    assert first.cancelled.is_set()
    assert all(line.startswith("{") for line in processor.log.read_text("utf-8").splitlines()), "grpcio prints nothing"
