"""Members that come to a group and go again, by its coordinator's word."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from threading import Event

from wait_registry.errors import WaitRegistryError
from wait_registry.kafka.group_description import describe_group
from wait_registry.settings.kafka import KafkaSettings

REQUEST_S = 5.0
LOOK_S = 0.5

Members = Callable[[], Collection[str]]
"""Asks for the ids of a group's members; raises WaitRegistryError when nobody answers."""


def members_of(bootstrap: str, group: str) -> Members:
    """Return what asks the coordinator of a group."""
    kafka = KafkaSettings(bootstrap_servers=bootstrap, request_timeout_s=REQUEST_S)
    return lambda: list(describe_group(kafka, group).due)


class Passers:
    """Counts those who were in the group in some look, and neither in the first one nor in the last.

    A coordinator that is away says nothing: such a look is none.
    """

    def __init__(self, members: Members) -> None:
        self._members = members
        self._before: frozenset[str] | None = None
        self._seen: frozenset[str] = frozenset()
        self._now: frozenset[str] = frozenset()

    @property
    def count(self) -> int:
        """How many came and went, as of the last look."""
        return len(self._seen - self._now - (self._before or frozenset()))

    def look(self) -> bool:
        """Ask once; return whether there was an answer."""
        try:
            self._now = frozenset(self._members())
        except WaitRegistryError:
            return False
        self._seen |= self._now
        if self._before is None:
            self._before = self._now
        return True

    def look_until(self, count: int, within_s: float, ended: Event) -> int:
        """Look on until so many came and went, or the time is over; return how many did, 0 when nobody answers."""
        deadline = time.monotonic() + within_s
        answered = self.look()
        while (not answered or self.count < count) and time.monotonic() < deadline and not ended.is_set():
            ended.wait(LOOK_S)
            answered = self.look()
        return self.count if answered else 0
