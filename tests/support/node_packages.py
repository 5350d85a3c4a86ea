"""Programs on Node, with packages that `make` installs; tests are skipped without, or fail if this is a CI machine."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Final

from tests.support.chosen_stack import not_tested

_TOOLS: Final = Path(__file__).parents[2] / ".waitreg" / "tools"


def require_node(name: str) -> tuple[str, Path]:
    """Return the path of Node, and the folder of the packages that tests/support/NAME/package-lock.json locks."""
    found, modules = shutil.which("node"), _TOOLS / name / "node_modules"
    if found is None or not modules.is_dir():
        target = name.replace("_", "-")
        not_tested(f"Node or its packages are not here; `make {target}` gets the packages")
    return found, modules


def printed_events(log: Path, name: str) -> list[dict[str, Any]]:
    """Return the JSON lines with this member that a program has printed so far."""
    complete, _, _ = log.read_text("utf-8").rpartition("\n")
    lines = [json.loads(line) for line in complete.splitlines() if line.startswith("{")]
    return [line for line in lines if name in line]
