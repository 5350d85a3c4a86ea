"""A service's port stays its own while nobody listens there, whoever else looks for one meanwhile."""

from __future__ import annotations

import random

import pytest

from tests.chaos import held_port
from tests.chaos.held_port import HeldPort
from wait_registry.local.ports import LOWEST


class Same(random.Random):
    """Chooses the same ports each time, in the same order."""

    def __init__(self) -> None:
        super().__init__(7)


def test_a_port_that_is_held_is_chosen_by_nobody_else_until_it_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "SystemRandom", Same)
    first, second = HeldPort(), HeldPort()
    try:
        assert first.number != second.number
        held = first.number
        first.release()
        third = HeldPort()
        assert third.number == held
        third.release()
    finally:
        first.release()
        second.release()


def test_held_ports_are_not_those_that_servers_choose_from() -> None:
    port = HeldPort()
    port.release()
    assert held_port.FIRST <= port.number < held_port.FIRST + 2 * held_port.COUNT <= LOWEST
