"""A storm of rebalances: processors that join a group and leave it every second."""

from __future__ import annotations

import time
from contextlib import ExitStack
from threading import Event

from tests.chaos.schedule import PlannedFault
from tests.chaos.service import Service
from tests.chaos.stage import Scene
from wait_registry.errors import WaitRegistryError
from wait_registry.kafka.group_description import describe_group
from wait_registry.settings.kafka import KafkaSettings

REQUEST_S = 5.0
POLL_S = 0.5
BETWEEN_S = 1.0
AT_ONCE = 2
READY_WITHIN_S = 60.0
# A member that didn't leave in order stays until its session is over.
GONE_WITHIN_S = 15.0
READY_POLL_S = 0.1


class Passers:
    """Counts the members that some poll of the coordinator showed, and neither the first one nor the last."""

    def __init__(self, bootstrap: str, group: str) -> None:
        self._kafka = KafkaSettings(bootstrap_servers=bootstrap, request_timeout_s=REQUEST_S)
        self._group = group
        self._polls: list[frozenset[str]] = []

    def poll(self) -> bool:
        """Ask once; return whether the coordinator answered."""
        try:
            self._polls.append(frozenset(describe_group(self._kafka, self._group).due))
        except WaitRegistryError:
            return False
        return True

    def count_gone(self, ended: Event) -> int:
        """Poll until one has come and gone, or the time is over; return how many, 0 without an answer."""
        deadline = time.monotonic() + GONE_WITHIN_S
        while not ((answered := self.poll()) and self._gone()) and time.monotonic() < deadline and not ended.is_set():
            ended.wait(POLL_S)
        return len(self._gone()) if answered else 0

    def _gone(self) -> frozenset[str]:
        return frozenset().union(*self._polls) - self._polls[0] - self._polls[-1]


def storm(scene: Scene, fault: PlannedFault) -> str:
    """Start a processor every second and end the oldest, for a while; in the end all of them.

    The proof comes from the coordinator: members that weren't there before, were seen, and are gone.
    """
    passers = Passers(scene.stage.stack.bootstrap_servers, scene.place.settings.processor.group)
    visitors: list[Service] = []
    with scene.lock_of("group"):
        passers.poll()
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
        count = passers.count_gone(scene.ended)
    return f"{count} members came to the group and went" if count else ""


def _leave(scene: Scene, visitor: Service, passers: Passers) -> None:
    """End a visitor, if it hasn't ended, once it is ready; the group is polled before."""
    deadline = time.monotonic() + READY_WITHIN_S
    try:
        while visitor.running and not visitor.ready() and time.monotonic() < deadline and not scene.ended.is_set():
            scene.pause(READY_POLL_S)
        if visitor.running:
            passers.poll()
    finally:
        if visitor.stop() is None:
            visitor.notice_end()
