"""Who came to a group and went, and a storm of rebalances: processors that join and leave it every second."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from threading import Event

from tests.chaos.schedule import PlannedFault
from tests.chaos.service import Service
from tests.chaos.stage import Scene
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


BETWEEN_S = 1.0
AT_ONCE = 2
READY_WITHIN_S = 60.0
# Who didn't say goodbye is a member until its session is over.
GONE_WITHIN_S = 15.0
READY_LOOK_S = 0.1


def storm(scene: Scene, fault: PlannedFault) -> str:
    """Start a processor every second and end the oldest, for a while; in the end all of them.

    The proof is the coordinator's: members that weren't there before, were seen, and are gone.
    """
    passers = Passers(members_of(scene.stage.stack.bootstrap_servers, scene.place.settings.processor.group))
    visitors: list[Service] = []
    with scene.locks["group"]:
        passers.look()
        scene.begins(fault)
        deadline = time.monotonic() + fault.for_s
        with ExitStack() as leaving:
            while time.monotonic() < deadline and not scene.ended.is_set():
                visitors.append(scene.visitor())
                leaving.callback(_leave, scene, visitors[-1], passers)
                visitors[-1].start()
                if len(visitors) > AT_ONCE:
                    _leave(scene, visitors[-1 - AT_ONCE], passers)
                scene.pause(BETWEEN_S)
        count = passers.look_until(1, GONE_WITHIN_S, scene.ended)
    return f"{count} members came to the group and went" if count else ""


def _leave(scene: Scene, visitor: Service, passers: Passers) -> None:
    """End a visitor, if it hasn't ended, once it has come to work; the group is looked at before."""
    deadline = time.monotonic() + READY_WITHIN_S
    try:
        while visitor.running and not visitor.ready() and time.monotonic() < deadline:
            if scene.ended.is_set():
                break
            scene.pause(READY_LOOK_S)
        if visitor.running:
            passers.look()
    finally:
        if visitor.stop() is None:
            visitor.notice_end()
