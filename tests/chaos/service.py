"""One service of a run as a process behind its own links, which can be killed, frozen, stopped and started again."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import psutil

from tests.chaos.history.history import mode_of
from tests.support.quick_jvm import quick_jvm
from waitreg.local.background import Background, Endpoint
from waitreg.local.child import GuardedChild
from waitreg.local.environment import PREFIX
from waitreg.local.guard import process_tree
from waitreg.local.ports import LOOPBACK, LOWEST, is_free

# Below the ports that servers of stacks get. Each has a second one, which is ours as long as it is bound: a service
# needs its port only some seconds after it was chosen, and again whenever it is started again.
FIRST, COUNT = 10_000, (LOWEST - 10_000) // 2
PORTS_TRIED = 200
# A service that is stopped while its JVM starts takes a minute of a busy machine.
GRACE_S = 180.0
LISTENS_WITHIN_S = 2.0
HANDLER = f"{PREFIX}PROCESSOR__HANDLER"


class HeldPort:
    """One port; `release` gives it to others, and may be called again. RuntimeError if hardly any is free."""

    def __init__(self) -> None:
        chooser = random.SystemRandom()
        for _ in range(PORTS_TRIED):
            self.number, self._guard = chooser.randrange(FIRST, FIRST + COUNT), socket.socket()
            with suppress(OSError):
                self._guard.bind((LOOPBACK, self.number + COUNT))
                if is_free(self.number):
                    return
            self.release()
        raise RuntimeError(f"none of {PORTS_TRIED} ports from {FIRST} on was free on {LOOPBACK}")

    def release(self) -> None:
        self._guard.close()


def listens(port: int) -> bool:
    """Return whether a connection is accepted."""
    try:
        socket.create_connection((LOOPBACK, port), LISTENS_WITHIN_S).close()
    except OSError:
        return False
    return True


class Cause(StrEnum):
    """Why a process ended."""

    KILLED = "killed"
    ASKED = "asked to end by SIGTERM"
    ASKED_EARLY = "asked to end before it had opened its port"
    ITSELF = "by itself"


class Exit(NamedTuple):
    """A process that ended: when, with which status (as a shell shows it), and why."""

    at_ms: int
    name: str
    status: int
    cause: Cause


class Service(Background):
    """`waitreg` with some arguments, started again and again under one name, with one log.

    A fault holds ``lock`` while it does something that others must not disturb; `Supervisor` takes it too, and so
    doesn't start what a fault has stopped.
    """

    grace_s = GRACE_S

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        directory: Path,
        variables: Mapping[str, str],
        ready_path: str = "/health/ready",
        port: int = 0,
        modes: Sequence[str] = (),
    ) -> None:
        """Describe it, without starting it: its settings are ``variables``, ``ready_path`` answers 200 once it works.

        It runs in ``directory``. If ``port`` is 0, it gets a free one as telemetry port. ``modes`` are the registration
        modes of its starts, again and again; none for what has no mode, or that of its settings.
        """
        self._held_port = None if port else HeldPort()
        port = port if self._held_port is None else self._held_port.number
        own = {**variables, f"{PREFIX}TELEMETRY__PORT": str(port)}
        super().__init__(name, directory, arguments, own, Endpoint(port, ready_path))
        self.kind = name.partition("-")[0]
        self.lock = threading.RLock()
        self.exits: list[Exit] = []
        self.starts = 0
        self._modes = modes
        self._always = {**self.environment, **quick_jvm(f"-Djava.io.tmpdir={directory / 'scratch'}")}

    def start(self) -> None:
        """Start it, unless it runs. It isn't ready yet."""
        with self.lock:
            if not self.running:
                self.notice_end()
                self.starts += 1
                self.environment = {**self._always, **self._of_this_start()}
                self.launch()

    def _of_this_start(self) -> Mapping[str, str]:
        # Registrations and calls name their process, and so the faults that it had.
        own = {f"{PREFIX}PROCESSOR__INSTANCE": f"{self.name}/{self.starts}"}
        if (handler := self._always.get(HANDLER, "")).startswith("http"):
            own[HANDLER] = f"{handler}{self.name}/{self.starts}"
        if self._modes:
            mode = own[f"{PREFIX}PROCESSOR__REGISTRATION"] = mode_of(self.starts, self._modes)
            if mode != "off":  # an order is refused then
                own[f"{PREFIX}PROCESSOR__ORDERING"] = "unordered"
        return own

    def ready(self) -> bool:
        """Return whether it does its work now."""
        return self._serving()

    def at_work(self) -> bool:
        """Return whether it has come up: ready, or standing by for another one of its kind."""
        return self._serving() or "standby" in self.state

    def kill(self) -> None:
        """Kill it and its children at once (SIGKILL)."""
        with self.lock:
            if self.running:
                child = self._running_child()
                super().kill()
                self._note_end(child, Cause.KILLED)

    def stop(self) -> None:
        """Send SIGTERM and wait, if it runs."""
        with self.lock:
            if self.running:
                child, cause = self._running_child(), Cause.ASKED if listens(self.port) else Cause.ASKED_EARLY
                super().stop()
                self._note_end(child, cause)

    def notice_end(self) -> Exit | None:
        """Return how it ended by itself, once; None while it runs and when that has been noticed before."""
        with self.lock:
            if self._child is None or self.running:
                return None
            return self._note_end(self._child, Cause.ITSELF)

    def _note_end(self, child: GuardedChild, cause: Cause) -> Exit:
        status, self._child = child.exit_status, None
        self.exits.append(Exit(time.time_ns() // 1_000_000, self.name, -1 if status is None else status, cause))
        return self.exits[-1]

    def programs(self) -> Iterator[tuple[psutil.Process, str]]:
        """Yield its processes with the names of their programs; what ends meanwhile is skipped."""
        virtual_machines: set[int] = set()
        for process in process_tree(self.pid) if self._child is not None else []:
            try:
                program, parent = Path(process.exe()).name, process.ppid()
            except psutil.Error:
                continue
            # A JVM about to run a program is there twice for a moment, with the same memory.
            if program == "java":
                if parent in virtual_machines:
                    continue
                virtual_machines.add(process.pid)
            yield process, program

    def jvms(self) -> list[psutil.Process]:
        """Return its Java virtual machines; none when there are none yet, or it doesn't run."""
        return [process for process, program in self.programs() if program == "java"]


def kill_all(services: Iterable[Service]) -> None:
    """Kill those that run."""
    for service in services:
        service.kill()
