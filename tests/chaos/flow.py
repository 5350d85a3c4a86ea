"""A load at a fixed rate, for as long as it takes."""

from __future__ import annotations

import threading
from types import TracebackType

from tests.chaos.stage import Place
from wait_registry.demo.load import LoadPlan, run_load
from wait_registry.demo.shapes import shape_named
from wait_registry.settings.kafka import KafkaSettings


class Flow:
    """Publishes in a thread, past every faulty link, until it is ended; a context manager."""

    def __init__(self, place: Place, bootstrap: str, rate_per_s: float, shape: str = "tiny") -> None:
        kafka = KafkaSettings(bootstrap_servers=bootstrap, request_timeout_s=60)
        self._settings = place.settings.model_copy(update={"kafka": kafka})
        self._plan = LoadPlan(place.input, None, rate_per_s, make=shape_named(shape).make)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="flow", daemon=True)
        self._error: BaseException | None = None
        self.published = 0
        """Records that the broker has acknowledged."""

    def __enter__(self) -> Flow:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()

    def require_running(self) -> None:
        """Raise what ended it, if anything did."""
        if self._error is not None:
            raise self._error

    def end(self) -> None:
        """Publish nothing more; raises what went wrong."""
        self._stop.set()
        self._thread.join()
        self.require_running()

    def _progress(self, acknowledged: int) -> None:
        self.published = acknowledged

    def _run(self) -> None:
        try:
            run_load(self._settings, self._plan, self._progress, self._stop.is_set)
        except Exception as error:  # noqa: BLE001 - raised by `end`
            self._error = error
