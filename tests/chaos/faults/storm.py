"""A storm of rebalances: processors that join a group and leave it every second."""

from __future__ import annotations

import time
from contextlib import ExitStack

from tests.chaos.schedule import PlannedFault
from tests.chaos.service import Service
from tests.chaos.stage import Scene
from wait_registry.errors import WaitRegistryError
from wait_registry.kafka.group_description import describe_group
from wait_registry.settings.kafka import KafkaSettings

REQUEST_S = 5.0
POLL_S, READY_POLL_S, BETWEEN_S = 0.5, 0.1, 1.0
AT_ONCE = 2
READY_WITHIN_S = 60.0
# A member that didn't leave in order stays until its session is over.
GONE_WITHIN_S = 15.0


class Members:
    """The members of a group at each poll of its coordinator."""

    def __init__(self, scene: Scene) -> None:
        self._kafka = KafkaSettings(bootstrap_servers=scene.stage.stack.bootstrap_servers, request_timeout_s=REQUEST_S)
        self._group = scene.place.settings.processor.group
        self._polls: list[frozenset[str]] = []

    def poll(self) -> bool:
        """Ask once; return whether the coordinator answered."""
        try:
            self._polls.append(frozenset(describe_group(self._kafka, self._group).due))
        except WaitRegistryError:
            return False
        return True

    def gone(self) -> frozenset[str]:
        """Poll, and return the members of some poll that are neither in the first one nor in this one."""
        return frozenset().union(*self._polls) - self._polls[0] - self._polls[-1] if self.poll() else frozenset()


def storm(scene: Scene, fault: PlannedFault) -> str:
    """Start a processor every second and end the oldest, for a while; in the end all of them.

    The proof comes from the coordinator: members that weren't there before, were seen, and are gone.
    """
    members, visitors = Members(scene), list[Service]()
    with scene.lock_of("group"):
        members.poll()
        scene.begins(fault)
        deadline = time.monotonic() + fault.for_s
        with ExitStack() as leaving:
            while time.monotonic() < deadline and not scene.ended.is_set():
                visitors.append(scene.visitor())
                leaving.callback(_leave, scene, visitors[-1], members)
                visitors[-1].start()
                if len(visitors) > AT_ONCE:
                    _leave(scene, visitors[-1 - AT_ONCE], members)
                scene.pause(BETWEEN_S)
        deadline = time.monotonic() + GONE_WITHIN_S
        while not (gone := members.gone()) and time.monotonic() < deadline and not scene.ended.is_set():
            scene.pause(POLL_S)
    return f"{len(gone)} members came to the group and went" if gone else ""


def _leave(scene: Scene, visitor: Service, members: Members) -> None:
    """End a visitor, if it hasn't ended, once it is ready; the group is polled before."""
    deadline = time.monotonic() + READY_WITHIN_S
    try:
        while visitor.running and not visitor.ready() and time.monotonic() < deadline and not scene.ended.is_set():
            scene.pause(READY_POLL_S)
        if visitor.running:
            members.poll()
    finally:
        visitor.stop()
        visitor.notice_end()
