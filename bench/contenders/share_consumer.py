"""The share consumer of confluent-kafka (KIP-932, a preview in librdkafka), in explicit mode.

As the client's guide has it (its docs/kip-932-share-consumer.md): poll a batch, work on it, acknowledge every record,
poll again. To poll before the whole batch is acknowledged is an error, so several members take turns, each in a thread
of its own: while one waits for the slowest call of its batch, the others' calls have the free slots. N calls run at
once, of all members together. There are two members where a batch is ten times N, else four.

A batch is a whole number of the producer's batches (`max.poll.records` is a soft bound here), 500 records by default;
more where N is more.
"""

from __future__ import annotations

import asyncio
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from confluent_kafka import AcknowledgeType, KafkaException, Message, ShareConsumer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from bench.contenders.flow_program import FlowArguments, MeasuredRun, async_call

DEFAULT_POLL_RECORDS: Final = 500
POLL_S: Final = 0.2
# Without these a new share group begins at the log's end, and a lock is over after 30 s.
GROUP: Final = {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": "60000"}


async def work(arguments: FlowArguments) -> None:
    """Consume until the run ends the process."""
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in GROUP.items()]
    resource = ConfigResource(ResourceType.GROUP, arguments.group, incremental_configs=entries)
    client = AdminClient({"bootstrap.servers": arguments.kafka})  # it lives until the answer is there
    client.incremental_alter_configs([resource])[resource].result(30)
    call = async_call(arguments.handler, MeasuredRun(arguments).meter)
    slots = asyncio.Semaphore(arguments.in_flight)

    async def bounded(message: Message) -> None:
        async with slots:
            await call(message.value() or b"")

    async def handle(messages: list[Message]) -> None:
        if arguments.handler == "timed":
            await asyncio.gather(*map(bounded, messages))
        else:
            for message in messages:  # no call waits: tasks would only cost
                await call(message.value() or b"")

    async def member() -> None:
        most = max(DEFAULT_POLL_RECORDS, arguments.in_flight)
        mode = {"share.acknowledgement.mode": "explicit", "max.poll.records": most}
        consumer = ShareConsumer({"bootstrap.servers": arguments.kafka, "group.id": arguments.group, **mode})
        consumer.subscribe([arguments.topic])
        loop, thread = asyncio.get_running_loop(), ThreadPoolExecutor(1)
        while True:
            messages = await loop.run_in_executor(thread, consumer.poll, POLL_S)
            taken = [message for message in messages if _is_record(message)]
            await handle(taken)
            for message in taken:
                consumer.acknowledge(message, AcknowledgeType.ACCEPT)

    members = 2 if arguments.in_flight * 10 <= DEFAULT_POLL_RECORDS else 4
    await asyncio.gather(*(member() for _ in range(members)))


def _is_record(message: Message) -> bool:
    error = message.error()
    if error is not None and error.fatal():
        raise KafkaException(error)
    return error is None


if __name__ == "__main__":
    asyncio.run(work(FlowArguments(**json.loads(sys.argv[1]))))
