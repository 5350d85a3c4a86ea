"""The demo's background processes: services and downstreams, started as a user starts them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

from wait_registry.demo.environment import PREFIX, as_environment
from wait_registry.local.ports import LOOPBACK, free_ports
from wait_registry.local.server import EmbeddedServer, ServerError, http_get
from wait_registry.settings.root import Settings

JARS_VARIABLE = "WAITREG_SPARK__JARS_DIR"


class Background(EmbeddedServer):
    """One process of this package with an HTTP port (0: none)."""

    def __init__(
        self, name: str, directory: Path, arguments: Sequence[str], variables: Mapping[str, str], port: int, ready: str
    ) -> None:
        """Describe `python -m ARGUMENTS` with these variables; the path ``ready`` answers 200 once it works.

        It runs in the directory, so that it reads no settings file.
        """
        super().__init__(directory)
        self.name = name
        self.port = port
        self._arguments = arguments
        self._ready = ready
        scratch = directory / "scratch"
        self.environment = {
            **variables,
            "PYTHONUNBUFFERED": "1",
            # Python's and Spark's temporary files: a killed process can't remove its own.
            "TMPDIR": str(scratch),
            "SPARK_SUBMIT_OPTS": f"-Djava.io.tmpdir={scratch}",
        }

    @property
    def log(self) -> Path:
        """The file with everything that it prints."""
        return self.directory / f"{self.name}.log"

    @property
    def address(self) -> str:
        """Return the URL of its port."""
        return f"http://{LOOPBACK}:{self.port}/"

    def get(self, path: str) -> tuple[int, bytes]:
        """Return status and body of a GET; status 0 while no process listens."""
        return http_get(self.port, path)

    def get_json(self, path: str) -> dict[str, Any]:
        """Return the JSON object at a path; raise ServerError when it isn't answered."""
        status, body = self.get(path)
        if status != 200:
            self.require_running()
            raise ServerError(f"{self.name} answered GET {path} with status {status}")
        answer: dict[str, Any] = json.loads(body)
        return answer

    def _prepare(self) -> None:
        (self.directory / "scratch").mkdir(exist_ok=True)

    def _command(self) -> list[str]:
        inherited = [key for key in os.environ if key.startswith(PREFIX) and key != JARS_VARIABLE]
        unset = [part for key in inherited if key not in self.environment for part in ("-u", key)]
        return ["env", *unset, sys.executable, "-m", *self._arguments]

    def _serving(self) -> bool:
        status, body = self.get(self._ready)
        self.state = f" ({body.decode()})"
        return status == 200


class Backgrounds:
    """Starts background processes and ends them all; none of them is ready yet."""

    def __init__(self, directory: Path) -> None:
        """Take the folder for their logs and scratch files."""
        self.directory = directory
        self._started: list[Background] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # Gracefully if there is time: services remove their scratch files then.
        with ThreadPoolExecutor(max(1, len(self._started))) as pool:
            for background in self._started:
                pool.submit(background.stop)

    def service(self, command: str, settings: Settings, name: str = "") -> Background:
        """Start processor, sink or sweeper."""
        (port,) = free_ports(1)
        variables = {**as_environment(settings), f"{PREFIX}TELEMETRY__PORT": str(port)}
        return self._start(name or command, ["wait_registry", command], variables, port, "/health/ready")

    def baseline(self, name: str, settings: Settings) -> Background:
        """Start `wait_registry.demo.baseline`, which has no HTTP port."""
        return self._start(name, ["wait_registry.demo.baseline"], as_environment(settings), 0, "")

    def downstream(self, mixture: str, calls: Path, name: str) -> Background:
        """Start a downstream of its own counter."""
        (port,) = free_ports(1)
        arguments = ["wait_registry", "downstream", "--port", str(port), "--mixture", mixture, "--log", str(calls)]
        return self._start(name, arguments, {}, port, "/stats")

    def _start(
        self, name: str, arguments: Sequence[str], variables: Mapping[str, str], port: int, ready: str
    ) -> Background:
        background = Background(name, self.directory, arguments, variables, port, ready)
        background.launch()
        self._started.append(background)
        return background
