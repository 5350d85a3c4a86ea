"""A process of this package in the background, started as a user starts it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from wait_registry.settings.tree import Settings
from waitreg.local.environment import PREFIX, as_environment
from waitreg.local.ports import LOOPBACK
from waitreg.local.server import EmbeddedServer, ServerError, http_get

JARS_VARIABLE = "WAITREG_SPARK__JARS_DIR"


def console_background(settings: Settings, directory: Path, port: int, *, temporary: bool = False) -> Background:
    """Describe a console with these settings that isn't started yet.

    Args:
        settings: its own, and where Postgres is.
        directory: its folder.
        port: where it listens on loopback.
        temporary: see `EmbeddedServer`.
    """
    variables = {**as_environment(settings), f"{PREFIX}CONSOLE__PORT": str(port)}
    ready = Endpoint(port, "/health/ready")
    return Background("console", directory, ["console"], variables, ready, temporary=temporary)


class Endpoint(NamedTuple):
    """An HTTP port (0: none), and the path that answers 200 once the process works."""

    port: int
    ready: str


class Background(EmbeddedServer):
    """One running subcommand of `waitreg`, or another module of ours."""

    module = "waitreg"

    def __init__(
        self,
        name: str,
        directory: Path,
        arguments: Sequence[str],
        variables: Mapping[str, str],
        endpoint: Endpoint,
        *,
        temporary: bool = False,
    ) -> None:
        """Describe `python -m MODULE ARGUMENTS` with these variables.

        It runs in the directory, so that it reads no settings file.
        """
        super().__init__(directory, temporary=temporary)
        self.name = name
        self.port, self._ready = endpoint
        self._arguments = arguments
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
        return ["env", *unset, sys.executable, "-m", self.module, *self._arguments]

    def _serving(self) -> bool:
        status, body = self.get(self._ready)
        self.state = f" ({body.decode()})"
        return status == 200
