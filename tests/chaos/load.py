"""The load of a run, published past every faulty link; and aborted transactions between its records."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Self

from confluent_kafka import KafkaException, Producer

from tests.chaos.companion import Companion
from tests.chaos.mixture import mixture
from tests.chaos.schedule import Schedule
from tests.chaos.stage import Place
from wait_registry.demo.load import LoadPlan, run_load
from wait_registry.demo.shapes import shape_named
from wait_registry.errors import TransientError
from wait_registry.kafka.clients import producer_config
from wait_registry.settings.kafka import KafkaSettings

ABORTED_RECORDS = 5
BETWEEN_S = 1.0
REQUEST_S = 5.0
# An open transaction holds back whoever reads committed records; a broker that crashed forgets none.
TRANSACTION_MS = 5_000


class Flow:
    """Publishes at a fixed rate in a thread, past every faulty link, until it is ended; a context manager."""

    def __init__(self, place: Place, bootstrap: str, rate_per_s: float, shape: str = "tiny") -> None:
        kafka = KafkaSettings(bootstrap_servers=bootstrap, request_timeout_s=60)
        self._settings = place.settings.model_copy(update={"kafka": kafka})
        self._plan = LoadPlan(place.input, None, rate_per_s, make=shape_named(shape))
        self._stop = threading.Event()
        self._threads = ThreadPoolExecutor(1)
        self._running: Future[None] = Future()
        self.published = 0
        """Records that the broker has acknowledged."""

    def __enter__(self) -> Self:
        self._running = self._threads.submit(self._publish)
        return self

    def __exit__(self, kind: type[BaseException] | None, *of_no_interest: object) -> None:
        self._stop.set()
        self._threads.shutdown()

    def require_running(self) -> None:
        """Raise what ended it, if anything did."""
        if self._running.done():
            self._running.result()

    def end(self) -> None:
        """Publish nothing more; raises what went wrong."""
        self._stop.set()
        self._running.result()

    def _progress(self, acknowledged: int) -> None:
        self.published = acknowledged

    def _publish(self) -> None:
        run_load(self._settings, self._plan, self._progress, self._stop.is_set)


class Load(Flow):
    """The records of a schedule. A broker that is away is waited for.

    What is to be there before anything else continues, `publish_backlog` publishes before the block.
    """

    def __init__(self, place: Place, schedule: Schedule, bootstrap: str, broken_off: threading.Event) -> None:
        load = schedule.load
        super().__init__(place, bootstrap, load.rate_per_s)
        # Partitions that are added while it runs get their part soon. The topic's limit is on batches: one record each.
        properties = {"topic.metadata.refresh.interval.ms": 1000, "batch.num.messages": 1}
        kafka = KafkaSettings(bootstrap_servers=bootstrap, librdkafka={**properties}, request_timeout_s=60)
        self._settings = place.settings.model_copy(update={"kafka": kafka})
        self._backlog = load.backlog
        self._records = load.backlog + load.records
        self._broken_off = broken_off
        self._plan = LoadPlan(
            topic=place.input,
            records=self._records,
            rate_per_s=load.rate_per_s,
            seed=schedule.seed,
            make=mixture(load.shares, schedule.settings.registration_bytes),
            manifest=place.manifest,
        )

    def __exit__(self, kind: type[BaseException] | None, *of_no_interest: object) -> None:
        if kind is not None:
            self._stop.set()  # the broker may never come again
        self._threads.shutdown()

    def publish_backlog(self) -> None:
        """Publish all of it, as fast as the broker takes it."""
        rest = replace(self._plan, records=self._backlog, rate_per_s=None)
        if self._backlog:
            self.published = run_load(self._settings, rest, stopping=self._over).records

    def wait(self) -> None:
        """Wait until the broker has all of it; raises what went wrong."""
        self._running.result()

    def _publish(self) -> None:
        while self.published < self._records and not self._over():
            self._publish_from(self.published)

    def _publish_from(self, done: int) -> None:
        """Publish the rest; what a broker didn't acknowledge within a minute is published again, as a record more."""
        rest = replace(self._plan, first=done, records=self._records - done)
        try:
            run_load(self._settings, rest, lambda acknowledged: self._progress(done + acknowledged), self._over)
        except TransientError as error:
            print(f"the load continues after {self.published} records: {error}", file=sys.stderr)

    def _over(self) -> bool:
        return self._broken_off.is_set() or self._stop.is_set()


class Aborts(Companion):
    """Produces a few records each second and aborts them: who reads committed records sees none of it.

    A context manager. A broker that is away is waited for.
    """

    def __init__(self, place: Place, bootstrap: str) -> None:
        self._topic = place.input
        self._kafka = KafkaSettings(bootstrap_servers=bootstrap)
        super().__init__("aborts", BETWEEN_S, self._abort_while_possible)

    def _abort_while_possible(self) -> None:
        # Another producer of this id ends what this one leaves open.
        with suppress(KafkaException):
            self._abort_again_and_again()

    def _abort_again_and_again(self) -> None:
        own = {"transactional.id": f"{self._topic}.aborts", "transaction.timeout.ms": TRANSACTION_MS}
        producer = Producer({**producer_config(self._kafka, **own), "log_level": 0})
        producer.init_transactions(REQUEST_S)
        while not self.ended.wait(BETWEEN_S):
            producer.begin_transaction()
            for number in range(ABORTED_RECORDS):
                producer.produce(self._topic, f"aborted {number}".encode(), b"key %d" % number)
            producer.flush(REQUEST_S)
            producer.abort_transaction(REQUEST_S)
