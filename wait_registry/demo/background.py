"""The demo's background processes: services and downstreams, started as a user starts them."""

from __future__ import annotations

import http.client
import json
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

from wait_registry.demo.environment import PREFIX, as_environment
from wait_registry.errors import WaitRegistryError
from wait_registry.local.child import GuardedChild, Program, log_tail
from wait_registry.local.ports import LOOPBACK, free_ports
from wait_registry.settings.root import Settings

JARS_VARIABLE = "WAITREG_SPARK__JARS_DIR"
POLL_S = 0.1


class BackgroundError(WaitRegistryError):
    """A background process ended or did not become ready; the message has the end of its log."""


class Background:
    """One `waitreg` process with an HTTP port."""

    def __init__(self, name: str, log: Path, port: int, ready_path: str, child: GuardedChild) -> None:
        self.name = name
        self.log = log
        self.port = port
        self._ready_path = ready_path
        self._child = child

    @property
    def address(self) -> str:
        """Return the URL of its port."""
        return f"http://{LOOPBACK}:{self.port}/"

    @property
    def pid(self) -> int:
        """Return its process id."""
        return self._child.pid

    def get(self, path: str) -> tuple[int, bytes]:
        """Return status and body of a GET; status 0 while no process listens."""
        connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=5)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException):
            return 0, b""
        finally:
            connection.close()

    def get_json(self, path: str) -> dict[str, Any]:
        """Return the JSON object at a path; raise BackgroundError when it isn't answered."""
        status, body = self.get(path)
        if status != 200:
            self.require_running()
            raise BackgroundError(f"{self.name} answered GET {path} with status {status}")
        answer: dict[str, Any] = json.loads(body)
        return answer

    def is_ready(self) -> bool:
        """Return whether it does its work now; raise BackgroundError when it has ended."""
        self.require_running()
        return self.get(self._ready_path)[0] == 200

    def wait_ready(self, deadline_s: float = 90.0) -> None:
        """Wait until it is ready; raise BackgroundError when it ends instead or takes longer."""
        deadline = time.monotonic() + deadline_s
        while not self.is_ready():
            if time.monotonic() > deadline:
                _, reasons = self.get(self._ready_path)
                raise BackgroundError(
                    f"{self.name} was not ready after {deadline_s:.0f} s ({reasons.decode()}); its log:\n"
                    f"{log_tail(self.log)}"
                )
            time.sleep(POLL_S)

    def require_running(self) -> None:
        """Raise BackgroundError when it has ended."""
        status = self._child.exit_status
        if status is not None:
            raise BackgroundError(f"{self.name} ended with status {status}; its log:\n{log_tail(self.log)}")

    def kill(self) -> None:
        """End it with SIGKILL."""
        self._child.kill()

    def stop(self) -> int:
        """End it with SIGTERM, wait, and return its exit status."""
        self._child.stop()
        return self._child.exit_status or 0


class Backgrounds:
    """Starts background processes and ends them all."""

    def __init__(self, directory: Path) -> None:
        """Take the folder for their logs and scratch files; they run there, so that they read no settings file."""
        self.directory = directory
        self._scratch = directory / "scratch"
        self._scratch.mkdir()
        self._started: list[Background] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # Gracefully if there is time: services remove their scratch files then.
        with ThreadPoolExecutor(max(1, len(self._started))) as pool:
            for background in self._started:
                pool.submit(background.stop)

    def service(self, command: str, settings: Settings, name: str = "") -> Background:
        """Start processor, sink or sweeper; not ready yet."""
        (port,) = free_ports(1)
        variables = {**as_environment(settings), f"{PREFIX}TELEMETRY__PORT": str(port)}
        return self._start(name or command, ["wait_registry", command], variables, port, "/health/ready")

    def baseline(self, name: str, settings: Settings) -> Background:
        """Start `wait_registry.demo.baseline`, which has no HTTP port."""
        return self._start(name, ["wait_registry.demo.baseline"], as_environment(settings), 0, "")

    def downstream(self, mixture: str, calls: Path, name: str) -> Background:
        """Start a downstream of its own counter; not ready yet."""
        (port,) = free_ports(1)
        arguments = ["wait_registry", "downstream", "--port", str(port), "--mixture", mixture, "--log", str(calls)]
        return self._start(name, arguments, {}, port, "/stats")

    def _start(
        self, name: str, arguments: Sequence[str], variables: dict[str, str], port: int, ready_path: str
    ) -> Background:
        log = self.directory / f"{name}.log"
        inherited = [key for key in os.environ if key.startswith(PREFIX) and key not in (*variables, JARS_VARIABLE)]
        unset = [part for key in inherited for part in ("-u", key)]
        own = {
            "PYTHONUNBUFFERED": "1",
            # Python's and Spark's temporary files: a killed process can't remove its own.
            "TMPDIR": str(self._scratch),
            "SPARK_SUBMIT_OPTS": f"-Djava.io.tmpdir={self._scratch}",
        }
        command = ["env", *unset, sys.executable, "-m", *arguments]
        child = GuardedChild(Program(command, log, self.directory, environment={**variables, **own}))
        background = Background(name, log, port, ready_path, child)
        self._started.append(background)
        return background
