"""One run of docker-compose.yml under a name, ports and volumes of its own, driven by the docker command alone."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# Below the range that systems hand out themselves, so that no other process takes one before the start.
PORTS = range(20000, 30000)
POLL_S = 1.0
NO_VARIABLES: Mapping[str, str] = {}


class Failed(Exception):
    """A step did not do what was expected; the message says which, and has the end of what was printed."""


class Project:
    """A compose project; every command is printed before it runs."""

    def __init__(self, name: str, variables: Mapping[str, str], say: Callable[[str], None]) -> None:
        self.name = name
        self._say = say
        self._environment = {
            # Without --profile, what .env says counts, as for anybody.
            **{name: value for name, value in os.environ.items() if name != "COMPOSE_PROFILES"},
            **{port: str(number) for port, number in zip(_port_variables(), _free_ports(), strict=False)},
            "COMPOSE_PROJECT_NAME": name,
            "COMPOSE_ANSI": "never",
            "COMPOSE_PROGRESS": "quiet",
            **variables,
        }

    def compose(
        self, *arguments: str, limit_s: float, variables: Mapping[str, str] = NO_VARIABLES, status: int = 0
    ) -> str:
        """Run `docker compose` and return what it printed; Failed when it takes longer or ends with another status."""
        return self._run(["docker", "compose", *arguments], limit_s, variables, status)

    def docker(self, *arguments: str, limit_s: float = 60) -> str:
        """Run `docker`; otherwise as `compose`."""
        return self._run(["docker", *arguments], limit_s, NO_VARIABLES, 0)

    def container(self, service: str) -> str:
        found = self._quietly(["docker", "compose", "--profile", "*", "ps", "--all", "--quiet", service]).split()
        if len(found) != 1:
            raise Failed(f"{service} has {len(found)} containers, expected one")
        return found[0]

    def state(self, service: str) -> dict[str, Any]:
        """Return what the engine knows of a service's container."""
        inspected: list[dict[str, Any]] = json.loads(self._quietly(["docker", "inspect", self.container(service)]))
        return inspected[0]

    def port(self, variable: str) -> int:
        """Return a port on this host by its name in .env."""
        return int(self._environment[variable])

    def ask(self, service: str, *command: str) -> str:
        """Return what a command in a running container prints; empty when it fails."""
        call = ["docker", "compose", "--profile", "*", "exec", "--no-TTY", service, *command]
        done = self._ended(call, 60, NO_VARIABLES)
        return done.stdout if done.returncode == 0 else ""

    def wait_until(self, condition: Callable[[], bool], limit_s: float, what: str) -> None:
        """Return when the condition holds; Failed when it doesn't in time."""
        self._say(f"  waiting for {what}")
        deadline = time.monotonic() + limit_s
        while not condition():
            if time.monotonic() > deadline:
                raise Failed(f"no {what} within {limit_s:.0f} s")
            time.sleep(POLL_S)

    def logs(self) -> str:
        """Return the end of every container's log."""
        command = ["docker", "compose", "--profile", "*", "logs", "--tail=2000"]
        try:
            return self._quietly(command)
        except subprocess.TimeoutExpired as late:
            return f"no logs: {late}"

    def remove(self) -> None:
        """Take everything down, with volumes; nothing happens when nothing is there."""
        self.compose("--profile", "*", "down", "--volumes", "--remove-orphans", "--timeout=20", limit_s=180)

    def _run(self, command: Sequence[str], limit_s: float, variables: Mapping[str, str], status: int) -> str:
        # A script among the arguments is shown by its first line.
        self._say(f"$ {' '.join(word.partition(chr(10))[0] for word in command)}")
        try:
            done = self._ended(command, limit_s, variables)
        except subprocess.TimeoutExpired as late:
            raise Failed(f"{' '.join(command)}: not done within {limit_s:.0f} s") from late
        if done.returncode != status:
            end = "\n".join((done.stdout + done.stderr).splitlines()[-40:])
            raise Failed(f"{' '.join(command)}: status {done.returncode}, expected {status}\n{end}")
        return done.stdout

    def _quietly(self, command: Sequence[str]) -> str:
        return self._ended(command, 60, NO_VARIABLES).stdout

    def _ended(
        self, command: Sequence[str], limit_s: float, variables: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        environment = {**self._environment, **variables}
        return subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=limit_s, check=False
        )


def _port_variables() -> list[str]:
    lines = (ROOT / ".env").read_text("utf-8").splitlines()
    return [line.partition("=")[0] for line in lines if line.partition("=")[0].endswith("_PORT")]


def _free_ports() -> list[int]:
    found = []
    for port in random.sample(PORTS, 200):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
    return found
