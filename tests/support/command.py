"""The command `waitreg`, run to its end as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from wait_registry.settings.tree import Settings
from waitreg.local.environment import as_environment


@dataclass(frozen=True, slots=True)
class Ended:
    """What a finished command left: its exit code and what it printed."""

    code: int
    output: str
    errors: str


def run_waitreg(
    directory: Path,
    *arguments: str,
    settings: Settings | None = None,
    variables: Mapping[str, str] | None = None,
    deadline_s: float = 180.0,
    python: str = sys.executable,
) -> Ended:
    """Run `python -m waitreg` to its end.

    Args:
        directory: where it runs; no waitreg.toml and no .env of the checkout is read.
        arguments: the command line.
        settings: given to it as environment variables; this process's own WAITREG_ variables are not.
        variables: further environment variables.
        deadline_s: how long it may take, s.
        python: of the environment that has the product.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WAITREG_")}
    environment |= as_environment(settings) if settings is not None else {}
    done = subprocess.run(
        [python, "-m", "waitreg", *arguments],
        cwd=directory,
        env={**environment, **(variables or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=deadline_s,
    )
    return Ended(done.returncode, done.stdout, done.stderr)
