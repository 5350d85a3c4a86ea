"""The baseline that the demo and the benchmark compare with: poll, run all at once, commit.

One slow record delays its whole batch. Nothing is registered. A failed call ends the process before the commit, so the
next start repeats the batch. Run `python -m waitreg.demo.baseline` with the settings of `waitreg processor`.
"""

from __future__ import annotations

import asyncio
import signal
from datetime import UTC, datetime, timedelta

from confluent_kafka import Consumer, KafkaException, Message

from processor.handlers.loading import load_handler
from processor.handlers.open_handler import OpenHandler
from processor.intake.group_config import group_config
from wait_registry.handler import Record
from wait_registry.logs import configure_logging
from wait_registry.settings.loading import load_settings
from wait_registry.settings.processor import ProcessorSettings
from wait_registry.settings.tree import Settings
from waitreg.processor import make_handlers_importable

POLL_S = 0.1


async def run(settings: Settings) -> None:
    """Work batch by batch until SIGTERM or SIGINT; a started batch is finished and committed."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    handler = load_handler(settings.processor)
    await handler.open()
    consumer = Consumer({**group_config(settings), "auto.offset.reset": "earliest", "enable.auto.offset.store": True})
    consumer.subscribe(list(settings.processor.topics))
    try:
        while not stop.is_set():
            messages = _poll(consumer, settings.processor.most_in_flight)
            await asyncio.gather(*(_call(handler, message, settings.processor) for message in messages))
            if messages:
                consumer.commit(asynchronous=False)  # what was polled
            await asyncio.sleep(0)  # lets the signal handlers run
    finally:
        consumer.close()
        await handler.close()


def _poll(consumer: Consumer, limit: int) -> list[Message]:
    messages: list[Message] = consumer.consume(limit, POLL_S)
    for message in messages:
        if (error := message.error()) is not None:
            raise KafkaException(error)
    return messages


async def _call(handler: OpenHandler, message: Message, processor: ProcessorSettings) -> None:
    if handler.slots is not None:
        await handler.slots.acquire()
    async with asyncio.timeout(processor.handler_timeout_s):
        await handler.call(_record(message, processor))


def _record(message: Message, processor: ProcessorSettings) -> Record:
    topic, partition, offset = message.topic() or "", message.partition() or 0, message.offset() or 0
    expires_at = datetime.now(UTC) + timedelta(seconds=processor.ttl_s)
    headers, wait_id = tuple(message.headers() or ()), f"{topic}-{partition}-{offset}"
    times, key, value = message.timestamp(), message.key(), message.value()
    return Record(topic, partition, offset, times[1], key, value, headers, 1, wait_id, processor.group, expires_at)


def main() -> None:
    """Run with the settings of the environment and the current directory."""
    settings = load_settings()
    configure_logging(settings.log, "processor")
    make_handlers_importable()
    asyncio.run(run(settings))


if __name__ == "__main__":
    main()
