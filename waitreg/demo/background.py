"""The demo's background processes: services and downstreams, started as a user starts them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from wait_registry.settings.tree import Settings
from waitreg.local.background import Background, Endpoint, console_background
from waitreg.local.environment import PREFIX, as_environment
from waitreg.local.ports import free_ports


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
        return self._start(name or command, [command], variables, Endpoint(port, "/health/ready"))

    def console(self, settings: Settings) -> Background:
        """Start the console."""
        return self._launched(console_background(settings, self.directory, free_ports(1)[0]))

    def baseline(self, name: str, settings: Settings) -> Background:
        """Start `waitreg.demo.baseline`, which has no HTTP port."""
        return self._start(name, ["waitreg.demo.baseline"], as_environment(settings), Endpoint(0, ""))

    def downstream(self, mixture: str, calls: Path, name: str) -> Background:
        """Start a downstream of its own counter."""
        (port,) = free_ports(1)
        arguments = ["downstream", "--port", str(port), "--mixture", mixture, "--log", str(calls)]
        return self._start(name, arguments, {}, Endpoint(port, "/stats"))

    def _start(
        self, name: str, arguments: Sequence[str], variables: Mapping[str, str], endpoint: Endpoint
    ) -> Background:
        return self._launched(Background(name, self.directory, arguments, variables, endpoint))

    def _launched(self, background: Background) -> Background:
        background.launch()
        self._started.append(background)
        return background
