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
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import psutil

from tests.support.quick_jvm import quick_jvm
from wait_registry.demo.environment import PREFIX
from wait_registry.local.child import GuardedChild, Program
from wait_registry.local.guard import process_tree
from wait_registry.local.ports import LOOPBACK, LOWEST, is_free

# Below the ports that servers of stacks get. Each has a second one, which is ours as long as it is bound: a service
# needs its port only some seconds after it was chosen, and again whenever it is started again.
FIRST, COUNT = 10_000, (LOWEST - 10_000) // 2
ATTEMPTS = 200


class HeldPort:
    """One port; `release` gives it to others."""

    def __init__(self) -> None:
        """Choose one; RuntimeError when hardly any is free."""
        self.number, self._guard = _choose()

    def release(self) -> None:
        """Let others have it. May be called again."""
        self._guard.close()


def _choose() -> tuple[int, socket.socket]:
    chooser = random.SystemRandom()
    for _ in range(ATTEMPTS):
        port = chooser.randrange(FIRST, FIRST + COUNT)
        guard = socket.socket()
        with suppress(OSError):
            guard.bind((LOOPBACK, port + COUNT))
            if is_free(port):
                return port, guard
        guard.close()
    raise RuntimeError(f"none of {ATTEMPTS} ports from {FIRST} on was free on {LOOPBACK}")


# A busy machine takes a minute to start a JVM, which somebody who is asked to end meanwhile waits for.
GRACE_S = 180.0
LISTENS_WITHIN_S = 2.0
# Where the jars are is the one setting of the caller's that counts.
JARS_VARIABLE = f"{PREFIX}SPARK__JARS_DIR"


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


@dataclass(frozen=True, slots=True)
class Exit:
    """A process that ended: when, with which status (as a shell shows it), and why."""

    at_ms: int
    name: str
    status: int
    cause: Cause


class Service:
    """`waitreg` with some arguments, started again and again under one name, with one log.

    Whoever does something to it that others must not disturb holds ``lock`` meanwhile; `Supervisor` takes it too, and
    so leaves alone what a fault has taken down.
    """

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        directory: Path,
        variables: Mapping[str, str],
        ready_path: str = "/health/ready",
        port: int = 0,
    ) -> None:
        """Describe it; nothing is started yet.

        Args:
            name: "processor-1", for example: kind and number.
            arguments: of `waitreg`.
            directory: to run in, with its log and its temporary files.
            variables: its settings, as environment variables.
            ready_path: answers 200 once it works.
            port: of that path; a free one when 0, given to it as telemetry port.
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
        self._variables = {**variables, f"{PREFIX}TELEMETRY__PORT": str(self.port)}
        self._scratch = directory / "scratch"
        self._scratch.mkdir(exist_ok=True)
        self._ready_path = ready_path
        self._child: GuardedChild | None = None

    @property
    def pid(self) -> int:
        """The process id of the last start."""
        assert self._child is not None, f"{self.name} was never started"
        return self._child.pid

    @property
    def running(self) -> bool:
        """Whether it is there (it may be frozen)."""
        return self._child is not None and self._child.exit_status is None

    def start(self) -> None:
        """Start it; nothing happens when it runs. It isn't ready yet."""
        with self.lock:
            if self.running:
                return
            self.notice_end()
            self.starts += 1
            self._child = GuardedChild(
                Program(
                    command=["env", *self._unset(), sys.executable, "-m", "wait_registry", *self._arguments],
                    log=self.log,
                    cwd=self._directory,  # no waitreg.toml and no .env of the checkout is read
                    environment={**self._variables, **self._own_variables()},
                    grace_s=GRACE_S,
                )
            )

    def ready(self) -> bool:
        """Whether it does its work now."""
        return self.get(self._ready_path) == 200

    def at_work(self) -> bool:
        """Whether it has come up: ready, or standing by for another one of its kind."""
        status, body = self.request("GET", self._ready_path)
        return status == 200 or "standby" in body

    def get(self, path: str) -> int:
        """Return the status of a GET; 0 while nobody answers."""
        return self.request("GET", path)[0]

    def request(self, method: str, path: str, body: str | None = None) -> tuple[int, str]:
        """Return status and body of a request to its port; status 0 while nobody answers."""
        connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=3)
        try:
            connection.request(method, path, body)
            response = connection.getresponse()
            return response.status, response.read().decode("utf-8", "replace")
        except (OSError, http.client.HTTPException):
            return 0, ""
        finally:
            connection.close()

    def kill(self) -> int:
        """Kill it and its children at once (SIGKILL); return the process id that is gone."""
        with self.lock:
            pid = self.pid
            if self._child is not None and self.running:
                self._child.kill()
                self._forget(Cause.KILLED)
            return pid

    def stop(self) -> int | None:
        """Send SIGTERM, wait, return the exit status; None when it wasn't running."""
        with self.lock:
            if self._child is None or not self.running:
                return None
            cause = Cause.ASKED if listens(self.port) else Cause.ASKED_EARLY
            self._child.stop()
            status = self._child.exit_status
            self._forget(cause)
            return status

    def freeze(self) -> None:
        """Stop it and its children in their tracks (SIGSTOP)."""
        if self._child is not None:
            self._child.pause()

    def thaw(self) -> None:
        """Let it and its children continue (SIGCONT)."""
        if self._child is not None:
            self._child.resume()

    def notice_end(self) -> Exit | None:
        """Return how it ended by itself, once; None while it runs and when that has been noticed before."""
        with self.lock:
            if self._child is None or self.running:
                return None
            return self._forget(Cause.ITSELF)

    def tree(self) -> list[psutil.Process]:
        """Return its processes, itself first; none when it doesn't run."""
        child = self._child
        return process_tree(child.pid) if child is not None else []

    def jvms(self) -> list[psutil.Process]:
        """Return its Java virtual machines; none when there are none yet, or it doesn't run."""
        return [process for process, program in self._programs() if program == "java"]

    def resident_bytes(self) -> int:
        """Return the resident memory of all its processes, bytes."""
        total = 0
        for process, _ in self._programs():
            with suppress(psutil.Error):  # ended between two looks
                total += process.memory_info().rss
        return total

    def _programs(self) -> Iterator[tuple[psutil.Process, str]]:
        """Yield its processes with the names of their programs; what ends between two looks is skipped."""
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

    def _forget(self, cause: Cause) -> Exit | None:
        if self._child is None:
            return None
        status = self._child.exit_status
        self._child = None
        ended = Exit(time.time_ns() // 1_000_000, self.name, -1 if status is None else status, cause)
        self.exits.append(ended)
        return ended

    def _unset(self) -> list[str]:
        inherited = [key for key in os.environ if key.startswith(PREFIX) and key != JARS_VARIABLE]
        return [part for key in inherited if key not in self._variables for part in ("-u", key)]

    def _own_variables(self) -> dict[str, str]:
        return {
            "PYTHONUNBUFFERED": "1",
            # Registrations name their process then, and so the faults that it had.
            f"{PREFIX}PROCESSOR__INSTANCE": f"{self.name}/{self.starts}",
            # What is killed can't remove its temporary files.
            "TMPDIR": str(self._scratch),
            **quick_jvm(f"-Djava.io.tmpdir={self._scratch}"),
        }


def kill_all(services: Iterable[Service]) -> None:
    """Kill those that run."""
    for service in services:
        if service.running:
            service.kill()
