"""What runs in the background of a run, again and again, in a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Self

from tests.chaos.service import Service

SUPERVISION_S = 0.1
RESTART_S = 1.0


class Companion:
    """Does something in a thread, with pauses of ``interval_s`` seconds, until it is ended; a context manager.

    An error that interrupts it is raised at its end, unless another one is being raised there: a run that believed that
    it continued concludes nothing.
    """

    def __init__(self, name: str, interval_s: float, do_once: Callable[[], object]) -> None:
        self.ended = threading.Event()
        """Set once it is to end: what takes long in ``do_once`` heeds it."""
        self._interval_s = interval_s
        self._do_once = do_once
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *of_no_interest: object) -> None:
        self.ended.set()
        self._thread.join()
        if kind is None and self._failure is not None:
            raise self._failure

    def end(self) -> None:
        """End it; raise what interrupted it. May be called again."""
        self.__exit__(None)

    def _run(self) -> None:
        try:
            while not self.ended.wait(self._interval_s):
                self._do_once()
        except BaseException as error:  # noqa: BLE001 - raised at its end
            self._failure = error


class Supervisor(Companion):
    """Starts services again that have ended by themselves; a context manager."""

    def __init__(self, services: Sequence[Service]) -> None:
        self._services = list(services)
        self._due: dict[str, float] = {}
        super().__init__("supervisor", SUPERVISION_S, self._check)

    def _check(self) -> None:
        for service in self._services:
            if service.lock.acquire(blocking=False):
                try:
                    self._check_one(service)
                finally:
                    service.lock.release()

    def _check_one(self, service: Service) -> None:
        if service.notice_end() is not None:
            self._due[service.name] = time.monotonic() + RESTART_S
        elif service.running:
            self._due.pop(service.name, None)
        elif time.monotonic() >= self._due.get(service.name, float("inf")):
            service.start()
