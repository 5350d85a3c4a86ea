"""Many processes killed in one moment: a rollout goes wrong, a machine loses its power."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack

import psutil

from tests.chaos.faults.listening import listens
from tests.chaos.scene import Scene
from tests.chaos.schedule import PlannedFault
from tests.chaos.service import Service


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
