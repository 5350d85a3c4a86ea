"""`waitreg connect` in a folder with copies of this project's files, under names of one test's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tests.support.command import Ended, run_waitreg
from tests.support.connect_connectors import Role, own_files
from tests.support.naming import Names
from wait_registry.settings.tree import Settings


class Commands:
    """Runs the command with settings; the connectors of its files are named by `names`."""

    def __init__(self, folder: Path, settings: Settings, names: Names) -> None:
        self.folder, self.settings, self.names = folder, settings, names

    def __call__(self, *arguments: str) -> Ended:
        return run_waitreg(self.folder, "connect", *arguments, settings=self.settings)

    def file(self, name: str, role: Role = "sink", changes: Mapping[str, str] | None = None) -> str:
        """Write a copy of our first file of a role, with changed properties, and return its name."""
        document = json.loads(own_files(role, "debezium")[0].read_text("utf-8"))
        document["name"] = self.names(name)
        document["config"] |= changes or {}
        (self.folder / f"{name}.json").write_text(json.dumps(document), "utf-8")
        return f"{name}.json"
