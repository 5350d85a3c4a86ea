"""What continues alongside a run, again and again, in a thread of its own."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Self

from tests.chaos.history.history import RssSample
from tests.chaos.service import Service


class Companion:
    """Does something at intervals until it is ended; a context manager.

    What interrupts it is raised where it ends, unless something else is being raised there: whoever believed that it
    continued concludes nothing.

    Args:
        name: of the thread.
        interval_s: from the end of one time to the beginning of the next one, s.
        do_once: what it does.
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
        self._join()
        if kind is None:
            self._require_unbroken()

    def end(self) -> None:
        """Do it no more; raises what broke it off. May be called again."""
        self._join()
        self._require_unbroken()

    def _join(self) -> None:
        self.ended.set()
        self._thread.join()

    def _require_unbroken(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            while not self.ended.wait(self._interval_s):
                self._do_once()
        except BaseException as error:  # noqa: BLE001 - raised where it ends
            self._failure = error


LOOK_S = 0.1
PAUSE_S = 1.0


class Supervisor(Companion):
    """Watches services in a thread of its own; a context manager."""

    def __init__(self, services: Sequence[Service]) -> None:
        self._services = list(services)
        self._due: dict[str, float] = {}
        super().__init__("supervisor", LOOK_S, self._look)

    def _look(self) -> None:
        for service in self._services:
            if service.lock.acquire(blocking=False):
                try:
                    self._look_at(service)
                finally:
                    service.lock.release()

    def _look_at(self, service: Service) -> None:
        if service.notice_end() is not None:
            self._due[service.name] = time.monotonic() + PAUSE_S
        elif service.running:
            self._due.pop(service.name, None)
        elif time.monotonic() >= self._due.get(service.name, float("inf")):
            service.start()


SAMPLE_S = 1.0
# A service may be away for much of a run, and a look may take its time; fewer say nothing about the most it held.
LEAST_SHARE, LEAST = 0.2, 3


class Samples(Companion):
    """Looks at the memory of services in a thread of its own; a context manager."""

    def __init__(self, services: Sequence[Service]) -> None:
        self.taken: list[RssSample] = []
        self._services = list(services)
        self._began_s = time.monotonic()
        super().__init__("samples", SAMPLE_S, self._look)

    def missing(self, lasted_s: float | None = None) -> str:
        """Say whose memory was hardly looked at in the time since it began; empty when nobody's."""
        lasted_s = time.monotonic() - self._began_s if lasted_s is None else lasted_s
        seen, least = Counter(sample.name for sample in self.taken), max(LEAST, LEAST_SHARE * lasted_s / SAMPLE_S)
        few = [service.name for service in self._services if seen[service.name] < least]
        return "; ".join(f"the memory of {name} was looked at {seen[name]} times in {lasted_s:.0f} s" for name in few)

    def _look(self) -> None:
        for service in self._services:
            if tree := service.tree():
                held = service.resident_bytes()
                self.taken.append(RssSample(time.time_ns() // 1_000_000, service.name, tree[0].pid, held))
