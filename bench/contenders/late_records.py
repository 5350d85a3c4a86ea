"""Records that are published once a group has its partitions.

In `deferred`, what is there before belongs to the warm-up after the assignment, and is registered in any case.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from threading import Event
from typing import Final

from confluent_kafka import Consumer, KafkaException

from bench.contenders.load import AT_ONCE, PARTITIONS, Mixture, committed, fill

ASSIGNED_S: Final = 120.0
POLL_S: Final = 0.1


@contextmanager
def publishing_once_assigned(
    kafka: str, topic: str, group: str, records: int, mixture: Mixture = AT_ONCE
) -> Iterator[Callable[[], None]]:
    """Publish one record per partition now, and in the block the others as soon as the group has committed one.

    Yields what waits until all are published; what the publishing raises, it raises, or the end of the block does.
    """
    fill(kafka, topic, PARTITIONS, mixture)
    left = Event()

    def publish() -> None:
        deadline_s, consumer = time.monotonic() + ASSIGNED_S, Consumer({"bootstrap.servers": kafka, "group.id": group})
        while not left.is_set():
            with suppress(KafkaException):  # a coordinator that has just started may refuse to answer
                if committed(consumer, topic, PARTITIONS):
                    fill(kafka, topic, records, mixture)
                    return
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"the group has committed nothing after {ASSIGNED_S:g} s")
            left.wait(POLL_S)

    with ThreadPoolExecutor(1) as pool:
        published = pool.submit(publish)
        try:
            yield published.result
        finally:
            left.set()
        published.result()
