"""A storm of rebalances: processors that join the group and leave it again every second."""

from __future__ import annotations

import time
from contextlib import ExitStack

from tests.chaos.faults.passers import Passers, members_of
from tests.chaos.scene import Scene
from tests.chaos.schedule import PlannedFault
from tests.chaos.service import Service

BETWEEN_S = 1.0
AT_ONCE = 2
READY_WITHIN_S = 60.0
# Who didn't say goodbye is a member until its session is over.
GONE_WITHIN_S = 15.0
LOOK_S = 0.1


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
            scene.pause(LOOK_S)
        if visitor.running:
            passers.look()
    finally:
        if visitor.stop() is None:
            visitor.notice_end()
