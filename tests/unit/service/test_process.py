"""A service run as a process: signals ask it to stop, waits end at the limit, what it raises comes out."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from tests.support.waiting import wait_until
from wait_registry.errors import FencedError
from wait_registry.service.process import ServiceProcess
from wait_registry.service.stop_limit import stop_limit

_CHILD = """
import signal, sys, threading
from wait_registry.service.process import ServiceProcess

class Stubborn:
    def __init__(self):
        self.stop = threading.Event()
    def run(self):
        print("running", flush=True)
        self.stop.wait()
        print("draining", flush=True)
        if "stubborn" in sys.argv:
            threading.Event().wait()
    def request_stop(self):
        self.stop.set()

ServiceProcess(Stubborn).run()
print("ended", flush=True)
"""


class _Service:
    """Runs until asked to stop; the signal comes from inside, as soon as it runs."""

    def __init__(self, number: signal.Signals | None = None, error: BaseException | None = None) -> None:
        self._number = number
        self._error = error
        self._stop = threading.Event()
        self.stopped = False

    def run(self) -> None:
        if self._error is not None:
            raise self._error
        assert self._number is not None
        os.kill(os.getpid(), self._number)
        self.stopped = self._stop.wait(30)

    def request_stop(self) -> None:
        self._stop.set()


SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@pytest.fixture(autouse=True)
def hangup() -> Iterator[None]:
    """SIGHUP isn't ignored, as it is where the tests run under `nohup`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_asks_the_service_to_stop_and_restores_the_handlers(
    number: signal.Signals, caplog: pytest.LogCaptureFixture
) -> None:
    before = [signal.getsignal(one) for one in SIGNALS]
    service = _Service(number)
    with caplog.at_level(logging.INFO):
        ServiceProcess(lambda: service).run()
    assert service.stopped
    said = [record.getMessage() for record in caplog.records]
    assert (len(said), said[0].startswith("stopping on a signal"), said[-1]) == (2, True, "ended")
    assert [signal.getsignal(one) for one in SIGNALS] == before


def test_what_nohup_has_ignored_stays_so() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    seen = []
    service = _Service(signal.SIGTERM)
    ServiceProcess(lambda: seen.append(signal.getsignal(signal.SIGHUP)) or service).run()
    assert seen == [signal.SIG_IGN]


def test_a_signal_while_the_service_is_built_keeps_it_from_running() -> None:
    service = _Service(error=AssertionError("it ran"))
    seen = threading.Event()

    def build() -> _Service:
        previous = signal.getsignal(signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        # Our handler puts the default one in place: that it did is how to know that the signal has come.
        while signal.getsignal(signal.SIGTERM) is previous:
            seen.wait(0.01)
        return service

    ServiceProcess(build).run()


@pytest.mark.parametrize("error", [FencedError("another sink is alive"), ZeroDivisionError("bug")])
def test_an_error_of_the_service_is_raised(error: Exception) -> None:
    with pytest.raises(type(error), match=str(error)):
        ServiceProcess(lambda: _Service(error=error)).run()


@pytest.mark.parametrize("mode", ["", "stubborn"])
def test_a_first_signal_ends_the_service_and_a_second_one_the_process(mode: str) -> None:
    with subprocess.Popen([sys.executable, "-c", _CHILD, mode], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "running\n"
        child.terminate()
        assert child.stdout.readline() == "draining\n"
        if mode == "stubborn":
            child.terminate()
            assert child.wait(30) == -signal.SIGTERM
        else:
            assert child.stdout.read() == "ended\n"
            assert child.wait(30) == 0


def test_a_running_block_is_given_up_at_the_limit_after_the_stop() -> None:
    stop, given_up = threading.Event(), threading.Event()
    with stop_limit(0.0, stop, given_up.set):
        assert not given_up.wait(0.05), "no stop was requested"
        stop.set()
        assert given_up.wait(30)


@pytest.mark.parametrize("stopped", [False, True])
def test_a_block_that_has_ended_gives_nothing_up(stopped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wait_registry.service.stop_limit.POLL_INTERVAL_S", 0.01)
    before = set(threading.enumerate())
    stop, given_up = threading.Event(), threading.Event()
    with stop_limit(60.0, stop, given_up.set):
        if stopped:
            stop.set()
        [watching] = set(threading.enumerate()) - before
    wait_until(lambda: not watching.is_alive(), 30, "the end of the watch")
    assert not given_up.is_set()
