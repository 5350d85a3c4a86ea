"""Faults of service processes: killed, frozen, told to end, robbed of their JVM."""

from __future__ import annotations

import time
from collections.abc import Sequence

import psutil

from tests.chaos.faults.membership import Membership
from tests.chaos.faults.stopped import stopped
from tests.chaos.scene import Scene
from tests.chaos.schedule import PlannedFault
from tests.support.processes import runs

JVM_WITHIN_S = 60.0
GONE_WITHIN_S = 5.0
LOOK_S = 0.1


def kill(scene: Scene, fault: PlannedFault) -> str:
    """Kill the process and its children (SIGKILL); start it again after a while."""
    service = scene.services[fault.target]
    with service.lock:
        service.start()  # it may just have ended by itself
        scene.begins(fault)
        try:
            pid = service.kill()
            proof = "" if psutil.pid_exists(pid) else f"pid {pid} is gone"
            scene.pause(fault.for_s)
        finally:
            service.start()
    return proof


def terminate(scene: Scene, fault: PlannedFault) -> str:
    """End the process in order (SIGTERM); start it again after a while."""
    service = scene.services[fault.target]
    with service.lock:
        service.start()
        scene.begins(fault)
        try:
            pid, status = service.pid, service.stop()
            scene.pause(fault.for_s)
        finally:
            service.start()
    ended = status is not None and not psutil.pid_exists(pid)
    return f"pid {pid} ended with status {status}" if ended else ""


def freeze(scene: Scene, fault: PlannedFault) -> str:
    """Stop the process and its children in their tracks, and let them go on: for the others it was dead meanwhile."""
    service = scene.services[fault.target]
    with service.lock:
        service.start()
        members = Membership(scene) if service.kind == "processor" else None
        scene.begins(fault)
        try:
            service.freeze()
            proof = stopped(service.tree())
            (scene if members is None else members).pause(fault.for_s)
        finally:
            service.thaw()
    return proof and proof + ("" if members is None else members.told())


def kill_jvm(scene: Scene, fault: PlannedFault) -> str:
    """Kill the JVM of a service that has come up: what the Python side does then is the service's own affair."""
    service = scene.services[fault.target]
    deadline = time.monotonic() + JVM_WITHIN_S
    while time.monotonic() < deadline and not scene.ended.is_set():
        with service.lock:
            machines = service.jvms()
            if machines and service.at_work():
                scene.begins(fault)
                return _without(machines)
        scene.pause(LOOK_S)
    return ""


def _without(machines: Sequence[psutil.Process]) -> str:
    for machine in machines:
        machine.kill()
    deadline = time.monotonic() + GONE_WITHIN_S
    while any(runs(machine) for machine in machines) and time.monotonic() < deadline:
        time.sleep(LOOK_S)
    pids = ", ".join(str(machine.pid) for machine in machines)
    return "" if any(runs(machine) for machine in machines) else f"JVM {pids} is gone"
