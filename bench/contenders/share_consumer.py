"""The share consumer of confluent-kafka (KIP-932, a preview in librdkafka), in explicit mode.

As its guide has it (docs/kip-932-share-consumer.md of confluent-kafka-python): poll a batch, work on it, acknowledge
every record, poll again; one member a thread. To poll before the whole batch is acknowledged is an error, so several
members take turns: while one waits for the slowest call of its batch, the others' calls have the free slots. N calls
run at once, those of all members together. There are two members where a batch is ten times N, else four.

A batch is a whole number of the producer's batches (`max.poll.records` is a soft bound here), 500 records by default;
more where N is more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from confluent_kafka import AcknowledgeType, KafkaException, ShareConsumer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from bench.contenders.arguments import FlowArguments, parse
from bench.contenders.calls import AsyncCall, async_call
from bench.contenders.measured_run import MeasuredRun

# Of large batches two always leave something to do; small ones are over before their slowest call is.
MEMBERS_OF_LARGE_BATCHES: Final = 2
MEMBERS: Final = 4
LARGE_BATCH: Final = 10
DEFAULT_POLL_RECORDS: Final = 500
POLL_S: Final = 0.2
ANSWER_S: Final = 30.0
# Without these a new share group begins at the log's end, and a lock is over after 30 s.
GROUP: Final = {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": "60000"}


def prepare_group(kafka: str, group: str) -> None:
    """Set what is the broker's to know about a share group; no client setting does."""
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in GROUP.items()]
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=entries)
    client = AdminClient({"bootstrap.servers": kafka})  # it lives until the answer is there
    client.incremental_alter_configs([resource])[resource].result(ANSWER_S)


async def work(arguments: FlowArguments) -> None:
    """Consume until the run ends the process."""
    prepare_group(arguments.kafka, arguments.group)
    call = async_call(arguments.handler, MeasuredRun(arguments).meter)
    if arguments.handler == "timed":
        call = _bounded(call, arguments.in_flight)
        batch: Callable[[list[Any], AsyncCall], Awaitable[None]] = _at_once
    else:
        batch = _one_by_one  # nothing in it waits: tasks would only cost
    large = arguments.in_flight * LARGE_BATCH <= DEFAULT_POLL_RECORDS
    members = MEMBERS_OF_LARGE_BATCHES if large else MEMBERS
    await asyncio.gather(*(_member(arguments, call, batch) for _ in range(members)))


async def _member(
    arguments: FlowArguments, call: AsyncCall, batch: Callable[[list[Any], AsyncCall], Awaitable[None]]
) -> None:
    consumer = ShareConsumer(
        {
            "bootstrap.servers": arguments.kafka,
            "group.id": arguments.group,
            "share.acknowledgement.mode": "explicit",
            "max.poll.records": max(DEFAULT_POLL_RECORDS, arguments.in_flight),
        }
    )
    consumer.subscribe([arguments.topic])
    loop, thread = asyncio.get_running_loop(), ThreadPoolExecutor(1)
    while True:
        messages = await loop.run_in_executor(thread, consumer.poll, POLL_S)
        taken = [message for message in messages if _is_record(message)]
        await batch(taken, call)
        for message in taken:
            consumer.acknowledge(message, AcknowledgeType.ACCEPT)


def _is_record(message: Any) -> bool:
    error = message.error()
    if error is not None and error.fatal():
        raise KafkaException(error)
    return error is None


async def _at_once(messages: list[Any], call: AsyncCall) -> None:
    await asyncio.gather(*(call(message.value()) for message in messages))


async def _one_by_one(messages: list[Any], call: AsyncCall) -> None:
    for message in messages:
        await call(message.value())


def _bounded(call: AsyncCall, in_flight: int) -> AsyncCall:
    slots = asyncio.Semaphore(in_flight)

    async def bounded(value: bytes) -> None:
        async with slots:
            await call(value)

    return bounded


if __name__ == "__main__":
    asyncio.run(work(parse(__doc__)))
