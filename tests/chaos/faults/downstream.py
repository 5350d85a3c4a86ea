"""Faults of the service that the handlers call."""

from __future__ import annotations

import json
import time
from pathlib import Path

from tests.chaos.schedule import PlannedFault
from tests.chaos.stage import Scene
from wait_registry.demo.calls import read_calls

FELT_WITHIN_S = 120.0
POLL_S = 0.5


def misbehave(scene: Scene, fault: PlannedFault, *, behavior: dict[str, str], status: int) -> str:
    """Have the downstream behave otherwise for a while, and until calls ended with this status."""
    service, usual = scene.downstream, {"mixture": scene.schedule.latencies, "fail": scene.schedule.failures}
    with service.lock:
        scene.begins(fault)
        try:
            _behave(scene, behavior)
            began_ms, proof = time.time_ns() // 1_000_000, ""
            scene.pause(fault.for_s)
            deadline = time.monotonic() + FELT_WITHIN_S
            while not (proof := felt(scene.place.calls, began_ms, time.time_ns() // 1_000_000, status)):
                if scene.ended.is_set() or time.monotonic() > deadline:
                    break
                scene.pause(POLL_S)
        finally:
            _behave(scene, usual)
    return proof


def felt(log: Path, began_ms: int, ended_ms: int, status: int) -> str:
    """Return the proof from the downstream's log: calls that came meanwhile ended so, and none succeeded.

    A caller may give up before any answer, so other calls prove nothing.
    """
    came = [call for call in read_calls(log) if began_ms < call.started_ms < ended_ms] if log.exists() else []
    count = sum(call.status == status for call in came)
    if not count or any(call.succeeded for call in came):
        return ""
    return f"{count} calls that came meanwhile ended with {status}, none of {len(came)} succeeded"


def _behave(scene: Scene, behavior: dict[str, str]) -> None:
    deadline = time.monotonic() + FELT_WITHIN_S
    while scene.downstream.request("POST", "/mixture", json.dumps(behavior))[0] != 200:
        if time.monotonic() > deadline:
            raise TimeoutError(f"the downstream did not take {behavior} within {FELT_WITHIN_S:g} s")
        scene.pause(POLL_S)
