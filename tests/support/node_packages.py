"""Programs on Node, with packages that `make` installs; tests are skipped without, or fail if this is a CI machine."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self

from tests.support.chosen_stack import not_tested
from tests.support.waiting import wait_until
from waitreg.local.child import GuardedChild, Program

_TOOLS: Final = Path(__file__).parents[2] / ".waitreg" / "tools"


class NodeProgram:
    """A server on Node as a child process, which prints its port and what happens as JSON lines; a context manager.

    Args:
        name: the folder of tests/support with its server.js, whose package-lock.json names the packages.
        folder: where it may write.
        environment: the variables of server.js.
    """

    port: int

    def __init__(self, name: str, folder: Path, environment: Mapping[str, str]) -> None:
        node, modules = shutil.which("node"), _TOOLS / name / "node_modules"
        if node is None or not modules.is_dir():
            not_tested(f"Node or its packages are not here; `make {name.replace('_', '-')}` gets the packages")
        self._printed = folder / f"{name}.log"
        server = Path(__file__).parent / name / "server.js"
        variables = {"NODE_PATH": str(modules), **environment}
        self._child = GuardedChild(Program([node, str(server)], self._printed, folder, variables))

    def __enter__(self) -> Self:
        try:
            wait_until(lambda: self.events("port") or self._child.exit_status is not None, what="the program on Node")
            assert self._child.exit_status is None, self._printed.read_text("utf-8")
        except BaseException:
            self.kill()
            raise
        self.port = self.events("port")[0]["port"]
        return self

    def __exit__(self, *of_no_interest: object) -> None:
        self.kill()

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return the complete lines with this member so far."""
        complete, _, _ = self._printed.read_text("utf-8").rpartition("\n")
        lines = [json.loads(line) for line in complete.splitlines() if line.startswith("{")]
        return [line for line in lines if name in line]

    def kill(self) -> None:
        """End it as a crash would."""
        self._child.kill()
