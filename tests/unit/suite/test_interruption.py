"""SIGTERM interrupts the programs of the tests as Ctrl-C does, but once: make and `timeout` both hand it on."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.support.programs import signals_interrupt


@pytest.fixture(autouse=True)
def signals_as_before() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_each_ctrl_c_interrupts() -> None:
    signals_interrupt()
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_a_sigterm_that_comes_again_does_not_interrupt_the_end() -> None:
    signals_interrupt()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)
    signal.raise_signal(signal.SIGTERM)
    signal.raise_signal(signal.SIGTERM)
