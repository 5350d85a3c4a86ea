"""One service of a run as a process behind its own links, which can be killed, frozen, stopped and started again."""

from __future__ import annotations

import http.client
import os
import random
import socket
import sys
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
from wait_registry.local.child import GuardedChild, Program
from wait_registry.local.environment import PREFIX
from wait_registry.local.guard import process_tree
from wait_registry.local.ports import LOOPBACK, LOWEST, is_free

# Below the ports that servers of stacks get. Each has a second one, which is ours as long as it is bound: a service
# needs its port only some seconds after it was chosen, and again whenever it is started again.
FIRST, COUNT = 10_000, (LOWEST - 10_000) // 2
PORTS_TRIED = 200
# A service that is stopped while its JVM starts takes a minute of a busy machine.
GRACE_S = 180.0
LISTENS_WITHIN_S = 2.0
# Where the jars are is the one setting of the caller's that counts.
JARS_VARIABLE = f"{PREFIX}SPARK__JARS_DIR"
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


class Service:
    """`waitreg` with some arguments, started again and again under one name, with one log.

    A fault holds ``lock`` while it does something that others must not disturb; `Supervisor` takes it too, and so
    doesn't start what a fault has stopped.
    """

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
        self.name = name
        self.kind = name.partition("-")[0]
        self.lock = threading.RLock()
        self.log = directory / f"{name}.log"
        self._held_port = None if port else HeldPort()
        self.port = port if self._held_port is None else self._held_port.number
        self.exits: list[Exit] = []
        self.starts = 0
        self._arguments = list(arguments)
        self._directory = directory
        self._modes = modes
        self._variables = {**variables, f"{PREFIX}TELEMETRY__PORT": str(self.port)}
        self._scratch = directory / "scratch"
        self._scratch.mkdir(exist_ok=True)
        self._ready_path = ready_path
        self._child: GuardedChild | None = None

    @property
    def pid(self) -> int:
        """The process ID of the last start."""
        assert self._child is not None, f"{self.name} was never started"
        return self._child.pid

    @property
    def running(self) -> bool:
        """Whether it is there (it may be frozen)."""
        return self._child is not None and self._child.exit_status is None

    def start(self) -> None:
        """Start it, unless it runs. It isn't ready yet."""
        with self.lock:
            if self.running:
                return
            self.notice_end()
            self.starts += 1
            inherited = [key for key in os.environ if key.startswith(PREFIX) and key != JARS_VARIABLE]
            unset = [part for key in inherited if key not in self._variables for part in ("-u", key)]
            own = {
                "PYTHONUNBUFFERED": "1",
                # Registrations name their process then, and so the faults that it had.
                f"{PREFIX}PROCESSOR__INSTANCE": f"{self.name}/{self.starts}",
                # What is killed can't remove its temporary files.
                "TMPDIR": str(self._scratch),
                **quick_jvm(f"-Djava.io.tmpdir={self._scratch}"),
            }
            if self._modes:
                mode = own[f"{PREFIX}PROCESSOR__REGISTRATION"] = mode_of(self.starts, self._modes)
                if mode != "off":  # an order is refused then
                    own[f"{PREFIX}PROCESSOR__ORDERING"] = "unordered"
            if (handler := self._variables.get(HANDLER, "")).startswith("http"):
                own[HANDLER] = f"{handler}{self.name}/{self.starts}"  # calls name their process, too
            self._child = GuardedChild(
                Program(
                    command=["env", *unset, sys.executable, "-m", "wait_registry", *self._arguments],
                    log=self.log,
                    cwd=self._directory,  # no waitreg.toml and no .env of the checkout is read
                    environment={**self._variables, **own},
                    grace_s=GRACE_S,
                )
            )

    def ready(self) -> bool:
        """Return whether it does its work now."""
        return self.request("GET", self._ready_path)[0] == 200

    def at_work(self) -> bool:
        """Return whether it has come up: ready, or standing by for another one of its kind."""
        status, body = self.request("GET", self._ready_path)
        return status == 200 or "standby" in body

    def request(self, method: str, path: str, body: str | None = None) -> tuple[int, str]:
        """Return status and body of a request to its port; status 0 without an answer."""
        connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=3)
        try:
            connection.request(method, path, body)
            response = connection.getresponse()
            return response.status, response.read().decode("utf-8", "replace")
        except (OSError, http.client.HTTPException):
            return 0, ""
        finally:
            connection.close()

    def kill(self) -> None:
        """Kill it and its children at once (SIGKILL)."""
        with self.lock:
            if self._child is not None and self.running:
                self._child.kill()
                self._forget(self._child, Cause.KILLED)

    def stop(self) -> int | None:
        """Send SIGTERM, wait, return the exit status; None when it wasn't running."""
        with self.lock:
            if self._child is None or not self.running:
                return None
            cause = Cause.ASKED if listens(self.port) else Cause.ASKED_EARLY
            self._child.stop()
            return self._forget(self._child, cause).status

    def pause(self) -> None:
        """Freeze it and its children (SIGSTOP)."""
        if self._child is not None:
            self._child.pause()

    def resume(self) -> None:
        """Let it and its children continue (SIGCONT)."""
        if self._child is not None:
            self._child.resume()

    def notice_end(self) -> Exit | None:
        """Return how it ended by itself, once; None while it runs and when that has been noticed before."""
        with self.lock:
            return None if self._child is None or self.running else self._forget(self._child, Cause.ITSELF)

    def tree(self) -> list[psutil.Process]:
        """Return its processes, itself first; none when it doesn't run."""
        child = self._child
        return process_tree(child.pid) if child is not None else []

    def programs(self) -> Iterator[tuple[psutil.Process, str]]:
        """Yield its processes with the names of their programs; what ends meanwhile is skipped."""
        virtual_machines: set[int] = set()
        for process in self.tree():
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

    def _forget(self, child: GuardedChild, cause: Cause) -> Exit:
        status = child.exit_status
        self._child = None
        self.exits.append(Exit(time.time_ns() // 1_000_000, self.name, -1 if status is None else status, cause))
        return self.exits[-1]


def kill_all(services: Iterable[Service]) -> None:
    """Kill those that run."""
    for service in services:
        service.kill()
