"""A service as a process: SIGTERM, SIGHUP and Ctrl-C ask it to stop, its error ends the process."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

log = logging.getLogger(__name__)

_JOIN_S = 0.1


def _signals() -> tuple[signal.Signals, ...]:
    """Return what asks to stop; `nohup` has SIGHUP, which a terminal sends when it is closed, ignored."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return (signal.SIGTERM, signal.SIGINT) if ignored else (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Service(Protocol):
    """What processor, sink and sweeper have in common."""

    def run(self) -> None:
        """Work until stopped; raise an error of the tree if it can't continue."""

    def request_stop(self) -> None:
        """Ask ``run`` to end soon; may be called from any thread and more than once."""


class ServiceProcess:
    """Runs one service in a thread of its own while the main thread waits for signals.

    The main thread holds none of the service's locks then, so that a signal handler can't deadlock with what it
    interrupts; and pyspark, which claims SIGINT when its session is made in the main thread, leaves ours alone. The
    first signal asks the service to stop, a second one ends the process at once.
    """

    def __init__(self, build: Callable[[], Service]) -> None:
        self._build = build
        self._service: Service | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        """Run the service until it ends; raises what it raised."""
        with stop_requests() as stop:
            thread = threading.Thread(target=self._run_service, args=(stop,), name="service", daemon=True)
            thread.start()
            self._await_end(thread, stop)
        if self._error is not None:
            raise self._error
        log.info("ended")

    def _await_end(self, thread: threading.Thread, stop: threading.Event) -> None:
        logged = asked = False
        while thread.is_alive() or (stop.is_set() and not logged):
            # Not in the signal handler, which may interrupt a thread that writes the log.
            if stop.is_set() and not logged:
                logged = True
                log.info("stopping on a signal: running work is finished first, a second signal ends it at once")
            if logged and not asked and self._service is not None:
                asked = True
                self._service.request_stop()
            # With a limit: where locks are made of condition variables (macOS), a signal doesn't interrupt a join.
            thread.join(_JOIN_S)

    def _run_service(self, stop: threading.Event) -> None:
        try:
            self._service = self._build()
            if not stop.is_set():
                self._service.run()
        except BaseException as error:  # noqa: BLE001 - handed to the main thread, which raises it
            self._error = error


@contextmanager
def ended_by_interrupt() -> Iterator[None]:
    """Have Ctrl-C end the process at once, as SIGTERM does, whatever a call within this block waits for.

    For work that is run again if it breaks off.
    """
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def stop_requests() -> Iterator[threading.Event]:
    """Turn the first Ctrl-C, SIGTERM or SIGHUP into an event; a second one ends the process at once."""
    stop = threading.Event()

    def request(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        stop.set()

    before = {number: signal.signal(number, request) for number in _signals()}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
