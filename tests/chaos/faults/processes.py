"""Faults of service processes: killed, frozen, told to end, robbed of their JVM, one or many at once."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack

import psutil

from tests.chaos.schedule import PlannedFault
from tests.chaos.service import Service, listens
from tests.chaos.stage import Scene
from tests.support.processes import runs

WITHIN_S = 10.0
LOOK_S = 0.02


def stopped(processes: Sequence[psutil.Process]) -> str:
    """Wait until all of them are stopped (state T) and say so; empty when they don't stop, or there are none."""
    deadline = time.monotonic() + WITHIN_S
    while (states := [_state(process) for process in processes]) and time.monotonic() < deadline:
        alive = [state for state in states if state not in (psutil.STATUS_ZOMBIE, "")]
        if alive and set(alive) == {psutil.STATUS_STOPPED}:
            return f"{len(alive)} processes were stopped"
        time.sleep(LOOK_S)
    return ""


def _state(process: psutil.Process) -> str:
    try:
        return str(process.status())
    except psutil.NoSuchProcess:
        return ""


JVM_WITHIN_S = 60.0
GONE_WITHIN_S = 5.0
STATE_LOOK_S = 0.1


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
    """Stop the process and its children (SIGSTOP), and let them continue: for the others it was dead meanwhile."""
    service = scene.services[fault.target]
    with service.lock:
        service.start()
        scene.begins(fault)
        try:
            service.freeze()
            proof = stopped(service.tree())
            scene.pause(fault.for_s)
        finally:
            service.thaw()
    return proof


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
        scene.pause(STATE_LOOK_S)
    return ""


def _without(machines: Sequence[psutil.Process]) -> str:
    for machine in machines:
        machine.kill()
    deadline = time.monotonic() + GONE_WITHIN_S
    while any(runs(machine) for machine in machines) and time.monotonic() < deadline:
        time.sleep(STATE_LOOK_S)
    pids = ", ".join(str(machine.pid) for machine in machines)
    return "" if any(runs(machine) for machine in machines) else f"JVM {pids} is gone"


def kill_group(scene: Scene, fault: PlannedFault) -> str:
    """Kill all processors (SIGKILL); start them again after a while."""
    with ExitStack() as held:
        services = _taken(scene, scene.schedule.names_of("processor"), held)
        scene.begins(fault)
        _started_at_last(services, held)
        proof = _gone([service.kill() for service in services])
        scene.pause(fault.for_s)
    return proof


def kill_everything(scene: Scene, fault: PlannedFault) -> str:
    """Kill all services, the broker and Postgres; start them again after a while, servers first.

    What the handlers call is somebody else's machine, and lives on.
    """
    stack = scene.stage.stack
    with ExitStack() as held:
        services = _taken(scene, scene.services, held)
        for name in ("broker", "postgres"):
            held.enter_context(scene.locks[name])
        scene.begins(fault)
        _started_at_last(services, held)
        # What is started first comes last here.
        held.callback(stack.broker.start)
        held.callback(stack.postgres.start)
        pids = [service.kill() for service in services]
        for server in (stack.broker, stack.postgres):
            pids.append(server.pid)
            server.kill()
        refused = not any(map(listens, (stack.broker.ports[0], stack.postgres.port)))
        proof = _gone(pids) if refused else ""
        scene.pause(fault.for_s)
    return proof


def _taken(scene: Scene, names: Iterable[str], held: ExitStack) -> list[Service]:
    """Take these services from all other faults, in the order of their names: two that take several can't block."""
    services = [scene.services[name] for name in sorted(names)]
    for service in services:
        held.enter_context(service.lock)
        service.start()  # it may just have ended by itself
    return services


def _started_at_last(services: Sequence[Service], held: ExitStack) -> None:
    """Have them run when all is over, each of them, whatever goes wrong until then, and before they are let go."""
    for service in services:
        held.callback(service.start)


def _gone(pids: Sequence[int]) -> str:
    return "" if any(map(psutil.pid_exists, pids)) else f"pids {', '.join(map(str, pids))} are gone"
