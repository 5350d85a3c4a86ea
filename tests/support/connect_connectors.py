"""Connectors of one test: made from this project's files, under names of the test's own, removed when it ends."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Literal

from tests.support.connect_rest import ConnectRest
from tests.support.naming import Names
from tests.support.waiting import wait_until
from wait_registry.settings.tree import Settings
from waitreg.connect.connector_file import Connector, read_connector
from waitreg.connect.variables import variable

CONFIGS = Path(__file__).parents[2] / "connect-configs"
Family = Literal["debezium", "jdbc"]
Role = Literal["sink", "source"]
CONNECTORS: Mapping[Role, tuple[str, ...]] = {
    "sink": ("wait.sink", "dead_letter.sink"),
    "source": ("expired.source", "expired.tombstones"),
}
START_S = 90.0


def own_files(role: Role, family: Family) -> list[Path]:
    """Return this project's files for a role."""
    return [CONFIGS / f"{name}.{family}.json" for name in CONNECTORS[role]]


def our_connector(file: str | Path, settings: Settings) -> Connector:
    """Return a connector of this project's, from its file in connect-configs/, with its variables from settings."""
    return read_connector(CONFIGS / file, partial(variable, settings=settings))


class Connectors:
    """All share one worker, so that a file's name for its connector gets a prefix."""

    def __init__(self, rest: ConnectRest, names: Names) -> None:
        self.rest = rest
        self._names = names
        self._made: list[str] = []

    def start(self, file: str, settings: Settings, changes: Mapping[str, str]) -> str:
        """Start the connector of a file and wait until it runs.

        Args:
            file: its path in connect-configs/.
            settings: what its variables are filled from.
            changes: properties in place of the file's.

        Returns:
            The connector's name.
        """
        found = our_connector(file, settings)
        name = self._names(found.name)
        self.rest.put(name, {**found.config, **changes})
        self.remove_at_end(name)
        self.wait_running(name)
        return name

    def remove_at_end(self, name: str) -> None:
        """Remove this connector when the test ends, even if another process made it."""
        self._made.append(name)

    def wait_running(self, name: str) -> None:
        """Wait until a connector and its tasks run; AssertionError with the trace when one has failed."""
        wait_until(lambda: self.rest.runs(name), START_S, f"{name} running")

    def wait_failed(self, name: str) -> str:
        """Wait until a connector or its task has failed and return the stack trace."""

        def trace() -> str:
            status = self.rest.status(name)
            parts = [status.get("connector", {}), *status.get("tasks", [])]
            return "".join(part.get("trace", "") for part in parts if part.get("state") == "FAILED")

        return wait_until(trace, START_S, f"the failure of {name}")

    def close(self) -> None:
        for name in filter(self.rest.status, self._made):
            self.rest.remove(name)
