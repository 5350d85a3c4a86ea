"""FastStream on aiokafka: a subscriber with `max_workers=N`.

With its default, AckPolicy.ACK_FIRST, N handlers run at once, whatever their partition, and aiokafka commits on a timer
what has been handed out, done or not: at most once. Every other policy works on one record of a partition at a time,
with a consumer for each worker (its pages "Basic Subscriber", concurrent processing, and "Consuming Acknowledgements").
The default is measured, since nothing else has N calls in flight on a few partitions.
Its log of two lines a record is off (`logger=None`), everything else stays at its defaults.
Runs in the peers' environment (setup/bench_peers.sh).
"""

from __future__ import annotations

import asyncio

from faststream import FastStream  # type: ignore[import-not-found,unused-ignore]
from faststream.kafka import KafkaBroker  # type: ignore[import-not-found,unused-ignore]

from bench.contenders.arguments import FlowArguments, parse
from bench.contenders.calls import async_call
from bench.contenders.measured_run import MeasuredRun


async def work(arguments: FlowArguments) -> None:
    """Consume until the run ends the process."""
    call = async_call(arguments.handler, MeasuredRun(arguments).meter)

    async def handle(value: bytes) -> None:
        await call(value)

    broker = KafkaBroker(arguments.kafka, logger=None)
    subscriber = broker.subscriber(
        arguments.topic, group_id=arguments.group, auto_offset_reset="earliest", max_workers=arguments.in_flight
    )
    subscriber(handle)
    await FastStream(broker, logger=None).run()


if __name__ == "__main__":
    asyncio.run(work(parse(__doc__)))
