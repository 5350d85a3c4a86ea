"""Faults of service processes: killed, frozen, told to end, robbed of their JVM."""

from __future__ import annotations

import psutil

from tests.chaos.scene import Scene
from tests.chaos.schedule import PlannedFault
from tests.chaos.service import Service

STOPPED = psutil.STATUS_STOPPED


def kill(scene: Scene, fault: PlannedFault) -> str:
    """Kill the process and its children (SIGKILL); start it again after a while."""
    service = scene.services[fault.target]
    with service.lock:
        if not service.running:
            return _was_down(service)
        pid = service.kill()
        proof = "" if psutil.pid_exists(pid) else f"pid {pid} is gone"
        scene.pause(fault.for_s)
        service.start()
    return proof


def terminate(scene: Scene, fault: PlannedFault) -> str:
    """End the process in order (SIGTERM); start it again after a while."""
    service = scene.services[fault.target]
    with service.lock:
        if not service.running:
            return _was_down(service)
        pid, status = service.pid, service.stop()
        scene.pause(fault.for_s)
        service.start()
    return "" if psutil.pid_exists(pid) else f"pid {pid} ended with status {status}"


def freeze(scene: Scene, fault: PlannedFault) -> str:
    """Stop the process and its children in their tracks, and let them go on: for the others it was dead meanwhile."""
    service = scene.services[fault.target]
    with service.lock:
        if not service.running:
            return _was_down(service)
        service.freeze()
        states = [process.status() for process in service.tree()]
        scene.pause(fault.for_s)
        service.thaw()
    return f"{len(states)} processes were stopped" if set(states) == {STOPPED} else ""


def kill_jvm(scene: Scene, fault: PlannedFault) -> str:
    """Kill the JVM alone: what the Python side does then is the service's own affair."""
    service = scene.services[fault.target]
    with service.lock:
        machines = [process for process in service.tree()[1:] if _name_of(process) == "java"]
        for machine in machines:
            machine.kill()
        _, alive = psutil.wait_procs(machines, timeout=5)
    if not machines:
        return "it had no JVM at that moment" if not service.running else ""
    return "" if alive else f"JVM {', '.join(str(machine.pid) for machine in machines)} is gone"


def _was_down(service: Service) -> str:
    return f"{service.name} was down already and starts again by itself"


def _name_of(process: psutil.Process) -> str:
    try:
        return str(process.name())
    except psutil.NoSuchProcess:
        return ""
