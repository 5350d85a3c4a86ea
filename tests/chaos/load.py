"""The load of a run, published in a thread, past every faulty link: its manifest must be whole."""

from __future__ import annotations

import threading
from types import TracebackType

from tests.chaos.mixture import mixture
from tests.chaos.stage import Place
from wait_registry.settings.kafka import KafkaSettings
from waitreg.load import LoadPlan, run_load


class Load:
    """Publishes from the beginning of the block on; a context manager. A broker that is away is waited for."""

    def __init__(self, place: Place, bootstrap: str, stopping: threading.Event) -> None:
        load = place.schedule.load
        # Partitions that are added while it runs get their part soon. The topic's limit is on batches: one record each.
        properties = {"topic.metadata.refresh.interval.ms": 1000, "batch.num.messages": 1}
        kafka = KafkaSettings(bootstrap_servers=bootstrap, librdkafka={**properties}, request_timeout_s=60)
        self._settings = place.settings.model_copy(update={"kafka": kafka})
        self._plan = LoadPlan(
            topic=place.input,
            records=load.records,
            rate_per_s=load.rate_per_s,
            seed=place.schedule.seed,
            make=mixture(load.shares),
            manifest=place.manifest,
        )
        self._stopping = stopping
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._publish, name="load", daemon=True)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._thread.join()

    def wait(self) -> None:
        """Wait until the broker has all of it; raises what went wrong."""
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _publish(self) -> None:
        try:
            run_load(self._settings, self._plan, stopping=self._stopping.is_set)
        except Exception as error:  # noqa: BLE001 - raised by `wait`
            self._error = error
