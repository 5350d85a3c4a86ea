"""The load of a run, published in a thread, past every faulty link: its manifest must be whole."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace
from types import TracebackType

from tests.chaos.mixture import mixture
from tests.chaos.schedule import Schedule
from tests.chaos.stage import Place
from wait_registry.demo.load import LoadPlan, run_load
from wait_registry.errors import TransientError
from wait_registry.settings.kafka import KafkaSettings


class Load:
    """Publishes from the beginning of the block on; a context manager. A broker that is away is waited for.

    What is to be there before anything else goes on, `publish_backlog` publishes before the block.
    """

    def __init__(self, place: Place, schedule: Schedule, bootstrap: str, stopping: threading.Event) -> None:
        load = schedule.load
        # Partitions that are added while it runs get their part soon. The topic's limit is on batches: one record each.
        properties = {"topic.metadata.refresh.interval.ms": 1000, "batch.num.messages": 1}
        kafka = KafkaSettings(bootstrap_servers=bootstrap, librdkafka={**properties}, request_timeout_s=60)
        self._settings = place.settings.model_copy(update={"kafka": kafka})
        self._backlog = load.backlog
        self._records = load.backlog + load.records
        self._plan = LoadPlan(
            topic=place.input,
            records=self._records,
            rate_per_s=load.rate_per_s,
            seed=schedule.seed,
            make=mixture(load.shares, schedule.settings.registration_bytes),
            manifest=place.manifest,
        )
        self._acknowledged = 0
        self._stopping = stopping
        self._given_up = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._publish, name="load", daemon=True)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is not None:
            self._given_up.set()  # the broker may never come again
        self._thread.join()

    def publish_backlog(self) -> None:
        """Publish all of it, as fast as the broker takes it."""
        rest = replace(self._plan, records=self._backlog, rate_per_s=None)
        if self._backlog:
            self._acknowledged = run_load(self._settings, rest, stopping=self._stopping.is_set).records

    def wait(self) -> None:
        """Wait until the broker has all of it; raises what went wrong."""
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _publish(self) -> None:
        try:
            while (done := self._acknowledged) < self._records and not self._over():
                self._publish_from(done)
        except Exception as error:  # noqa: BLE001 - raised by `wait`
            self._error = error

    def _publish_from(self, done: int) -> None:
        """Publish the rest; what a broker didn't acknowledge within a minute is published again, as a record more."""
        rest = replace(self._plan, first=done, records=self._records - done)

        def progress(acknowledged: int) -> None:
            self._acknowledged = done + acknowledged

        try:
            run_load(self._settings, rest, progress, self._over)
        except TransientError as error:
            print(f"the load goes on after {self._acknowledged} records: {error}", file=sys.stderr)

    def _over(self) -> bool:
        return self._stopping.is_set() or self._given_up.is_set()
