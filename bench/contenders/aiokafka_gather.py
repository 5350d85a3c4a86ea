"""aiokafka, gather and commit: take at most N records, run them all at once, commit, take the next.

What one writes with the asyncio client without a framework. aiokafka's pages show the batch (`getmany`) and the commit
by hand after it with `enable_auto_commit=False`, for at least once (aiokafka.readthedocs.io, "Consumer client": manual
committing); everything else stays at its defaults.
Runs in the peers' environment (setup/bench_peers.sh).
"""

from __future__ import annotations

import asyncio
from typing import Final

from aiokafka import AIOKafkaConsumer  # type: ignore[import-not-found,unused-ignore]

from bench.contenders.arguments import FlowArguments, parse
from bench.contenders.calls import async_call
from bench.contenders.measured_run import MeasuredRun

EMPTY_POLL_MS: Final = 200


async def work(arguments: FlowArguments) -> None:
    """Consume until the run ends the process."""
    handle = async_call(arguments.handler, MeasuredRun(arguments).meter)
    consumer = AIOKafkaConsumer(
        arguments.topic,
        bootstrap_servers=arguments.kafka,
        group_id=arguments.group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    await consumer.start()
    while True:
        taken = await consumer.getmany(timeout_ms=EMPTY_POLL_MS, max_records=arguments.in_flight)
        if taken:
            await asyncio.gather(*(handle(record.value) for records in taken.values() for record in records))
            await consumer.commit()


if __name__ == "__main__":
    asyncio.run(work(parse(__doc__)))
