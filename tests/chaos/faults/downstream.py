"""Faults of the service that the handlers call."""

from __future__ import annotations

import json
import time

import psutil

from tests.chaos.faults.listening import listens
from tests.chaos.scene import Scene
from tests.chaos.schedule import PlannedFault

FELT_WITHIN_S = 120.0
LOOK_S = 0.1


def fails(scene: Scene, fault: PlannedFault, *, failures: str) -> str:
    """Answer every call with a failure for a while, and until one was."""
    return _otherwise(scene, fault, {"fail": failures}, f"answered {failures}")


def hangs(scene: Scene, fault: PlannedFault) -> str:
    """Answer no call for a while: each ends when its caller gives up."""
    return _otherwise(scene, fault, {"mixture": "hang"}, "hung")


def gone(scene: Scene, fault: PlannedFault) -> str:
    """Kill it, and start it again at the same port after a while."""
    service = scene.downstream
    with service.lock:
        pid = service.kill()
        refused = not listens(service.port) and not psutil.pid_exists(pid)
        scene.pause(fault.for_s)
        service.start()
    return f"pid {pid} was gone, port {service.port} refused" if refused else ""


def _otherwise(scene: Scene, fault: PlannedFault, behaviour: dict[str, str], what: str) -> str:
    service, mood = scene.downstream, scene.schedule.mood
    with service.lock:
        before = _calls(scene)
        _behave(scene, behaviour)
        scene.pause(fault.for_s)
        deadline = time.monotonic() + FELT_WITHIN_S
        while _calls(scene) <= before and time.monotonic() < deadline and not scene.ended.is_set():
            scene.pause(LOOK_S)
        count = _calls(scene) - before
        _behave(scene, {"mixture": mood.mixture, "fail": mood.failures})
    return f"{count} calls ended while it {what}" if count > 0 else ""


def _calls(scene: Scene) -> int:
    """Return how many calls have ended."""
    status, body = scene.downstream.request("GET", "/stats")
    if status != 200:
        return 0
    stats = json.loads(body)
    return int(sum(stats["by_status"].values()) + stats["dropped"])


def _behave(scene: Scene, behaviour: dict[str, str]) -> None:
    deadline = time.monotonic() + FELT_WITHIN_S
    while scene.downstream.request("POST", "/mixture", json.dumps(behaviour))[0] != 200:
        if time.monotonic() > deadline:
            raise TimeoutError(f"the downstream did not take {behaviour} within {FELT_WITHIN_S:g} s")
        scene.pause(LOOK_S)
