"""What became of the group while one of its processors stood still: for the broker it was dead, or it wasn't."""

from __future__ import annotations

import time

from tests.chaos.scene import Scene
from wait_registry.errors import WaitRegistryError
from wait_registry.kafka.group_description import describe_group
from wait_registry.settings.kafka import KafkaSettings

REQUEST_S = 2.0
LOOK_S = 1.0


class Membership:
    """Counts the members of a run's group, as the broker has them; a broker that is away says nothing."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._group = scene.place.settings.processor.group
        bootstrap = scene.stage.stack.bootstrap_servers
        self._kafka = KafkaSettings(bootstrap_servers=bootstrap, request_timeout_s=REQUEST_S)
        self._before = self._count()
        self._least = self._before

    def pause(self, seconds: float) -> None:
        """Let the fault last, and look on."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0 and not self._scene.ended.is_set():
            self._scene.pause(min(left, LOOK_S))
            self._least = min(self._count() or self._least, self._least)

    def told(self) -> str:
        """Say how many members it lost; empty when none was seen to go."""
        return f"; its group went from {self._before} members to {self._least}" if self._least < self._before else ""

    def _count(self) -> int:
        try:
            return len(describe_group(self._kafka, self._group).due)
        except WaitRegistryError:
            return 0
