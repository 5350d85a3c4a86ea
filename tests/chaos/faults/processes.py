"""Faults of processes, services and servers: killed, ended, frozen, one or all at once; and of a service's JVM."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Literal

import psutil

from tests.chaos.schedule import SERVERS, SERVICES, PlannedFault
from tests.chaos.service import Service, listens
from tests.chaos.stage import Scene
from tests.support.processes import runs
from waitreg.local.broker import EmbeddedBroker
from waitreg.local.guard import process_tree
from waitreg.local.postgres import EmbeddedPostgres

Victim = Service | EmbeddedBroker | EmbeddedPostgres

STOPPED_WITHIN_S = 10.0
JVM_WITHIN_S = 60.0
GONE_WITHIN_S = 5.0
POLL_S = 0.05


def kill(scene: Scene, fault: PlannedFault, how: str = "kill") -> str:
    """Kill processes and their children (SIGKILL), or ``stop`` them; start them again after a while, servers first."""
    with taken(scene, fault, "start") as victims:
        pids = [victim.pid for victim in victims]
        for victim in victims:
            getattr(victim, how)()
        proof = _gone(pids, victims)
        scene.pause(fault.for_s)
        return proof


def freeze(scene: Scene, fault: PlannedFault) -> str:
    """Stop a process and its children (SIGSTOP), and let them continue after a while."""
    with taken(scene, fault, "resume") as (victim,):
        victim.pause()
        proof = _stopped(process_tree(victim.pid))
        scene.pause(fault.for_s)
        return proof


@contextmanager
def taken(scene: Scene, fault: PlannedFault, heal: Literal["start", "resume"]) -> Iterator[list[Victim]]:
    """Take the target from all other faults, in the order of names so that two faults can't block one another.

    All are healed at the end, whatever fails until then, and before other faults may have them.
    """
    with ExitStack() as held:
        victims: list[Victim] = []
        for name in _names(scene, fault.target):
            held.enter_context(scene.lock_of(name))
            victims.append(_victim(scene, name))
        for victim in victims:
            if isinstance(victim, Service):
                victim.start()  # it may just have ended by itself
        scene.begins(fault)
        for victim in victims:
            held.callback(getattr(victim, heal))
        yield victims


def _names(scene: Scene, target: str) -> list[str]:
    """Return the names behind a target, servers last: what is taken last is healed first."""
    if target == "group":
        return sorted(scene.schedule.names_of("processor"))
    if target == "everything":
        return [*sorted(scene.schedule.names_of(*SERVICES)), *SERVERS]
    return [target]


def _victim(scene: Scene, name: str) -> Victim:
    if name in SERVERS:
        return scene.stage.stack.broker if name == "broker" else scene.stage.stack.postgres
    return scene.downstream if name == "downstream" else scene.services[name]


def _gone(pids: Sequence[int], victims: Sequence[Victim]) -> str:
    ports = [victim.ports[0] if isinstance(victim, EmbeddedBroker) else victim.port for victim in victims]
    if any(map(psutil.pid_exists, pids)) or any(map(listens, ports)):
        return ""
    return f"pids {', '.join(map(str, pids))} are gone, ports {', '.join(map(str, ports))} refuse"


def _stopped(processes: Sequence[psutil.Process]) -> str:
    """Wait until all of them are stopped (state T) and say so; empty when they don't stop, or there are none."""
    deadline = time.monotonic() + STOPPED_WITHIN_S
    while (states := [_state(process) for process in processes]) and time.monotonic() < deadline:
        alive = [state for state in states if state not in (psutil.STATUS_ZOMBIE, "")]
        if alive and set(alive) == {psutil.STATUS_STOPPED}:
            return f"{len(alive)} processes were stopped"
        time.sleep(POLL_S)
    return ""


def _state(process: psutil.Process) -> str:
    try:
        return str(process.status())
    except psutil.NoSuchProcess:
        return ""


def kill_jvm(scene: Scene, fault: PlannedFault) -> str:
    """Kill the JVM of a service that has come up; the Python side is to cope with that."""
    service = scene.services[fault.target]
    deadline = time.monotonic() + JVM_WITHIN_S
    while time.monotonic() < deadline and not scene.ended.is_set():
        with service.lock:
            machines = service.jvms()
            if machines and service.at_work():
                scene.begins(fault)
                return _without(machines)
        scene.pause(POLL_S)
    return ""


def _without(machines: Sequence[psutil.Process]) -> str:
    for machine in machines:
        machine.kill()
    deadline = time.monotonic() + GONE_WITHIN_S
    while any(map(runs, machines)) and time.monotonic() < deadline:
        time.sleep(POLL_S)
    pids = ", ".join(str(machine.pid) for machine in machines)
    return "" if any(map(runs, machines)) else f"JVM {pids} is gone"
