"""Service processes, started as a user starts them, with their logs in files; none outlives its test."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from tests.support.waiting import wait_until
from wait_registry.settings.tree import Settings
from waitreg.local.child import log_tail
from waitreg.local.environment import as_environment
from waitreg.local.guard import signal_tree
from waitreg.local.ports import LOOPBACK, free_ports

ROOT = Path(__file__).parents[2]


class Service:
    """One running `waitreg <name>` process."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log: Path, telemetry_port: int) -> None:
        self.name = name
        self.process = process
        self.log = log
        self.telemetry_port = telemetry_port

    @property
    def pid(self) -> int:
        return self.process.pid

    def get(self, path: str) -> tuple[int, str]:
        """Return status and body of its telemetry port; status 0 while there is no listener."""
        connection = http.client.HTTPConnection(LOOPBACK, self.telemetry_port, timeout=5)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        except OSError:
            return 0, ""
        finally:
            connection.close()

    def metrics(self) -> dict[str, float]:
        """Return every sample of /metrics, by its name with labels."""
        _, body = self.get("/metrics")
        lines = (line.rpartition(" ") for line in body.splitlines() if line and not line.startswith("#"))
        return {name: float(value) for name, _, value in lines}

    def wait_ready(self, deadline_s: float = 180.0) -> Service:
        """Wait until /health/ready says 200; fails at once when the process ends."""

        def ready() -> bool:
            status = self.process.poll()
            assert status is None, f"{self.name} ended with status {status}:\n{log_tail(self.log, 60)}"
            return self.get("/health/ready")[0] == 200

        try:
            wait_until(ready, deadline_s, f"readiness of {self.name}")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.get('/health/ready')}\n{log_tail(self.log, 60)}") from None
        return self

    def wait(self, deadline_s: float = 180.0) -> int:
        """Wait until it ends and return its exit status (negative: the signal)."""
        try:
            return self.process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} still runs after {deadline_s:g} s:\n{log_tail(self.log, 60)}") from None

    def terminate(self, deadline_s: float = 180.0) -> int:
        self.process.terminate()
        return self.wait(deadline_s)

    def kill(self) -> None:
        """Kill it and all its children at once (SIGKILL)."""
        if self.process.poll() is None:
            signal_tree(self.pid, signal.SIGKILL)
        self.process.wait()

    def pause(self) -> None:
        signal_tree(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        signal_tree(self.pid, signal.SIGCONT)

    def log_lines(self) -> list[dict[str, Any]]:
        """Return its log records; lines that aren't JSON come as ``{"text": line}``."""
        return [_parsed(line) for line in self.log.read_text("utf-8", errors="replace").splitlines()]


def runs(process: psutil.Process) -> bool:
    """Return whether it runs; what has ended and waits for its parent to look (a zombie) doesn't."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def below(pid: int) -> list[tuple[str, psutil.Process]]:
    """Return name and process of all that a process and its children started, but what has just ended."""
    found = []
    for child in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            found.append((child.name(), child))
    return found


def gone(pid: int) -> bool:
    """Return whether no process of that id runs any more."""
    try:
        return not runs(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return True


def _parsed(line: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:
        return {"text": line}
    return value if isinstance(value, dict) else {"text": line}


class Services:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._started: list[Service] = []

    def start(
        self,
        name: str,
        settings: Settings,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        own_group: bool = False,
    ) -> Service:
        """Start `waitreg <name>` with these settings; the environment is that of the tests.

        With ``own_group`` it leads a process group of its own, as whatever a shell starts does.
        """
        port = settings.telemetry.port or free_ports(1)[0]
        log = self._directory / f"{len(self._started)}-{name}.log"
        variables = {key: value for key, value in os.environ.items() if not key.startswith("WAITREG_")}
        variables |= as_environment(settings)
        variables |= {"WAITREG_TELEMETRY__PORT": str(port), "PYTHONUNBUFFERED": "1"}
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "waitreg", name, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**variables, **(environment or {})},
                cwd=self._directory,  # no waitreg.toml and no .env of the checkout is read
                process_group=0 if own_group else None,
            )
        service = Service(name, process, log, port)
        self._started.append(service)
        return service

    def close(self) -> None:
        for service in self._started:
            service.kill()
