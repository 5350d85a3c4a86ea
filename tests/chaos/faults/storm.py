"""A storm of rebalances: processors that join the group and leave it again every second."""

from __future__ import annotations

import time

from tests.chaos.scene import Scene
from tests.chaos.schedule import PlannedFault
from tests.chaos.service import Service

BETWEEN_S = 1.0
AT_ONCE = 2
READY_WITHIN_S = 60.0
LOOK_S = 0.1


def storm(scene: Scene, fault: PlannedFault) -> str:
    """Start a processor every second and end the oldest, for a while; in the end all of them."""
    visitors: list[Service] = []
    came = 0
    with scene.locks["group"]:
        deadline = time.monotonic() + fault.for_s
        try:
            while time.monotonic() < deadline and not scene.ended.is_set():
                visitors.append(scene.visitor())
                visitors[-1].start()
                if len(visitors) > AT_ONCE:
                    came += _leave(scene, visitors.pop(0))
                scene.pause(BETWEEN_S)
        finally:
            for visitor in visitors:
                came += _leave(scene, visitor)
    return f"{came} processors joined and left" if came else ""


def _leave(scene: Scene, visitor: Service) -> bool:
    """End a visitor once it has been a member; return whether it was."""
    deadline = time.monotonic() + READY_WITHIN_S
    while not (member := visitor.ready()) and visitor.running and time.monotonic() < deadline:
        if scene.ended.is_set():
            break
        scene.pause(LOOK_S)
    if visitor.stop() is None:
        visitor.notice_end()
    return member
