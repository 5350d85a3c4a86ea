"""The Python peers: `python -m bench.contenders.python_peers NAME ...`, in their environment (setup/bench_peers.sh).

aiokafka: gather and commit, the usual program with the asyncio client and without a framework. Its pages show the batch
(`getmany`) and the manual commit after it with `enable_auto_commit=False` ("Consumer client").

arroyo: `RunTask` calls a function in the loop's own thread, for work that doesn't wait. `CommitOffsets` follows, under
the policy `ONCE_PER_SECOND`, as its page "Committing offsets" recommends; the consumer's configuration is what
`build_kafka_consumer_configuration` makes.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from typing import Any, Final

from bench.contenders.flow_program import FlowArguments, MeasuredRun, async_call, blocking_call

EMPTY_POLL_MS: Final = 200


async def aiokafka(arguments: FlowArguments) -> None:
    """Consume until the run ends the process."""
    from aiokafka import AIOKafkaConsumer  # type: ignore[import-not-found,unused-ignore]

    handle = async_call(arguments.handler, MeasuredRun(arguments).meter)
    group = {"group_id": arguments.group, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    consumer = AIOKafkaConsumer(arguments.topic, bootstrap_servers=arguments.kafka, **group)
    await consumer.start()
    while True:
        taken = await consumer.getmany(timeout_ms=EMPTY_POLL_MS, max_records=arguments.in_flight)
        if taken:
            await asyncio.gather(*(handle(record.value) for records in taken.values() for record in records))
            await consumer.commit()


def arroyo(arguments: FlowArguments) -> None:
    """Consume until the run ends the process."""
    from arroyo.backends.kafka import KafkaConsumer  # type: ignore[import-not-found,unused-ignore]
    from arroyo.backends.kafka.configuration import (  # type: ignore[import-not-found,unused-ignore]
        build_kafka_consumer_configuration,
    )
    from arroyo.commit import ONCE_PER_SECOND  # type: ignore[import-not-found,unused-ignore]
    from arroyo.processing import StreamProcessor, strategies  # type: ignore[import-not-found,unused-ignore]
    from arroyo.types import Topic  # type: ignore[import-not-found,unused-ignore]

    call = blocking_call(arguments.handler, MeasuredRun(arguments).meter)

    def run(message: Any) -> None:
        call(message.payload.value)

    class Factory(strategies.ProcessingStrategyFactory):  # type: ignore[misc,unused-ignore]
        def create_with_partitions(self, commit: Any, partitions: Mapping[Any, int]) -> Any:
            return strategies.RunTask(run, strategies.CommitOffsets(commit))

    where = {"bootstrap_servers": [arguments.kafka], "group_id": arguments.group}
    configuration = build_kafka_consumer_configuration({}, auto_offset_reset="earliest", **where)
    StreamProcessor(KafkaConsumer(configuration), Topic(arguments.topic), Factory(), ONCE_PER_SECOND).run()


if __name__ == "__main__":
    given = FlowArguments(**json.loads(sys.argv[2]))
    if sys.argv[1] == "arroyo":
        arroyo(given)
    else:
        asyncio.run(aiokafka(given))
