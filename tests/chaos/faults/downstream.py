"""Faults of the service that the handlers call."""

from __future__ import annotations

import json
import time
from pathlib import Path

import psutil

from tests.chaos.schedule import PlannedFault
from tests.chaos.service import listens
from tests.chaos.stage import Scene
from wait_registry.demo.calls import ABORTED, read_calls

FELT_WITHIN_S = 120.0
LOOK_S = 0.5


def fails(scene: Scene, fault: PlannedFault, *, status: int) -> str:
    """Answer every call with a failure for a while, and until one was; status 0 closes the connection instead."""
    return _otherwise(scene, fault, {"fail": f"100%:{status or 'drop'}"}, status)


def hangs(scene: Scene, fault: PlannedFault) -> str:
    """Answer no call for a while: each ends when its caller gives up."""
    return _otherwise(scene, fault, {"mixture": "hang"}, ABORTED)


def gone(scene: Scene, fault: PlannedFault) -> str:
    """Kill it, and start it again at the same port after a while."""
    service = scene.downstream
    with service.lock:
        scene.begins(fault)
        try:
            pid = service.kill()
            refused = not listens(service.port) and not psutil.pid_exists(pid)
            scene.pause(fault.for_s)
        finally:
            service.start()
    return f"pid {pid} was gone, port {service.port} refused" if refused else ""


def _otherwise(scene: Scene, fault: PlannedFault, behaviour: dict[str, str], status: int) -> str:
    service, mood = scene.downstream, scene.schedule.mood
    with service.lock:
        scene.begins(fault)
        try:
            _behave(scene, behaviour)
            began_ms = _now_ms()
            scene.pause(fault.for_s)
            deadline = time.monotonic() + FELT_WITHIN_S
            while not (proof := felt(scene.place.calls, began_ms, _now_ms(), status)) and time.monotonic() < deadline:
                if scene.ended.is_set():
                    break
                scene.pause(LOOK_S)
        finally:
            _behave(scene, {"mixture": mood.mixture, "fail": mood.failures})
    return proof


def felt(log: Path, began_ms: int, ended_ms: int, status: int) -> str:
    """Return the proof from the downstream's log: calls that came meanwhile ended so, and none was answered with 200.

    Whoever calls may give up before any answer, so that other calls say nothing.
    """
    came = [call for call in read_calls(log) if began_ms < call.started_ms < ended_ms] if log.exists() else []
    count = sum(call.status == status for call in came)
    if not count or any(call.succeeded for call in came):
        return ""
    return f"{count} calls that came meanwhile ended with {status}, none of {len(came)} succeeded"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _behave(scene: Scene, behaviour: dict[str, str]) -> None:
    deadline = time.monotonic() + FELT_WITHIN_S
    while scene.downstream.request("POST", "/mixture", json.dumps(behaviour))[0] != 200:
        if time.monotonic() > deadline:
            raise TimeoutError(f"the downstream did not take {behaviour} within {FELT_WITHIN_S:g} s")
        scene.pause(LOOK_S)
