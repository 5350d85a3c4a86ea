"""The load of a run, published past every faulty link; and aborted transactions between its records."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Self

from confluent_kafka import KafkaException, Producer

from tests.chaos.companion import Companion
from tests.chaos.mixture import mixture
from tests.chaos.schedule import Schedule
from tests.chaos.stage import Place
from wait_registry.errors import TransientError
from wait_registry.kafka.clients import producer_config
from wait_registry.settings.kafka import KafkaSettings
from waitreg.load.load import LoadPlan, run_load
from waitreg.load.shapes import SHAPES

ABORTED_RECORDS = 5
BETWEEN_S = 1.0
REQUEST_S = 5.0
# An open transaction holds back readers of committed records; a broker that crashed forgets none.
TRANSACTION_MS = 5_000


class Flow:
    """Publishes at a fixed rate in a thread, past every faulty link, until it is ended; a context manager."""

    def __init__(self, place: Place, rate_per_s: float, shape: str = "tiny", **librdkafka: Any) -> None:
        kafka = place.settings.kafka.model_copy(update={"librdkafka": librdkafka, "request_timeout_s": 60.0})
        self._settings = place.settings.model_copy(update={"kafka": kafka})
        self._plan = LoadPlan(place.input, None, rate_per_s, make=SHAPES[shape], manifest=place.manifest)
        self._stop = threading.Event()
        self._threads = ThreadPoolExecutor(1)
        self._running: Future[None] = Future()
        self.published = 0
        """Records that the broker has acknowledged."""

    def __enter__(self) -> Self:
        self._running = self._threads.submit(self._publish)
        return self

    def __exit__(self, *of_no_interest: object) -> None:
        self._stop.set()  # the broker may never come again
        self._threads.shutdown()

    def require_running(self) -> None:
        """Raise what ended it, if anything did."""
        if self._running.done():
            self._running.result()

    def end(self) -> None:
        """Publish nothing more; raises what went wrong."""
        self._stop.set()
        self._running.result()

    def _progress(self, before: int, acknowledged: int) -> None:
        self.published = before + acknowledged

    def _publish(self) -> None:
        run_load(self._settings, self._plan, partial(self._progress, 0), self._stop.is_set)


class Load(Flow):
    """The records of a schedule; it waits while the broker is unavailable.

    `publish_backlog` publishes, before the block, what is to be in the topic before anything else starts.
    """

    def __init__(self, place: Place, schedule: Schedule, interrupted: threading.Event) -> None:
        load = schedule.load
        # Partitions that are added while it runs get their part soon. The topic's limit is on batches: one record each.
        properties: dict[str, Any] = {"topic.metadata.refresh.interval.ms": 1000, "batch.num.messages": 1}
        super().__init__(place, load.rate_per_s, **properties)
        self._backlog = load.backlog
        self._records = load.backlog + load.records
        self._interrupted = interrupted
        self._plan = LoadPlan(
            topic=place.input,
            records=self._records,
            rate_per_s=load.rate_per_s,
            seed=schedule.seed,
            make=mixture(load.shares, place.settings.wait.max_message_bytes, shuffled=load.shuffled),
            manifest=place.manifest,
        )

    def publish_backlog(self) -> None:
        """Publish all of it, as fast as the broker takes it."""
        rest = replace(self._plan, records=self._backlog, rate_per_s=None)
        if self._backlog:
            self.published = run_load(self._settings, rest, stopping=self._over).records

    def wait(self) -> None:
        """Wait until the broker has all of it; raises what went wrong."""
        self._running.result()

    def _publish(self) -> None:
        """Publish the rest; records that a broker didn't acknowledge within a minute are published once more."""
        while (done := self.published) < self._records and not self._over():
            rest = replace(self._plan, first=done, records=self._records - done)
            try:
                run_load(self._settings, rest, partial(self._progress, done), self._over)
            except TransientError as error:
                print(f"the load continues after {self.published} records: {error}", file=sys.stderr)

    def _over(self) -> bool:
        return self._interrupted.is_set() or self._stop.is_set()


class Aborts(Companion):
    """Produces a few records each second and aborts them: readers of committed records see none of it.

    A context manager; it waits while the broker is unavailable.
    """

    def __init__(self, place: Place) -> None:
        self._topic = place.input
        self._kafka = KafkaSettings(bootstrap_servers=place.settings.kafka.bootstrap_servers)
        super().__init__("aborts", BETWEEN_S, self._abort_if_possible)

    def _abort_if_possible(self) -> None:
        # The next producer of this ID ends what this one leaves open.
        with suppress(KafkaException):
            own = {"transactional.id": f"{self._topic}.aborts", "transaction.timeout.ms": TRANSACTION_MS}
            producer = Producer({**producer_config(self._kafka, **own), "log_level": 0})
            producer.init_transactions(REQUEST_S)
            while not self.ended.wait(BETWEEN_S):
                producer.begin_transaction()
                for number in range(ABORTED_RECORDS):
                    producer.produce(self._topic, f"aborted {number}".encode(), b"key %d" % number)
                producer.flush(REQUEST_S)
                producer.abort_transaction(REQUEST_S)
