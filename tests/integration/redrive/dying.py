"""An executor that is killed at a step: `python -m tests.integration.redrive.dying JOB STEP`; settings by environment.

The steps are methods of the product, each `before` or `after` its call: the process kills itself there.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from wait_registry.kafka.fenced_producer import FencedProducer
from wait_registry.kafka.tail_reader import TailReader
from wait_registry.records.operation import Requested
from wait_registry.settings.loading import load_settings
from wait_registry.settings.tree import Settings
from waitreg.local.environment import as_environment
from waitreg.redrive.executor import Executor
from waitreg.redrive.snapshot import TableSnapshot

ROOT = Path(__file__).parents[3]
# A step that comes several times is the second one: the first writes that the job begins.
STEPS: Final[dict[str, tuple[Any, str, int]]] = {
    "fence": (FencedProducer, "fence", 1),
    "snapshot": (TableSnapshot, "__init__", 1),
    "tail": (TailReader, "read_on", 2),
    "produce": (FencedProducer, "_produce", 2),
    "flush": (FencedProducer, "_flush", 2),
    "commit": (FencedProducer, "_commit", 2),
}


def die() -> None:
    """End at once."""
    os.kill(os.getpid(), signal.SIGKILL)


def dying(original: Callable[..., Any], when: str, at: int) -> Callable[..., Any]:
    """Return the method with the end before or after its call number ``at``."""
    calls = 0

    def method(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == at and when == "before":
            die()
        found = original(*arguments, **named)
        if calls == at and when == "after":
            die()
        return found

    return method


def killed(settings: Settings, job: Requested, step: str, when: str) -> None:
    """Run an executor in a process of its own that dies at a step."""
    command = [sys.executable, "-m", "tests.integration.redrive.dying", job.model_dump_json(), step, when]
    environment = {**os.environ, **as_environment(settings)}
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert ended.returncode == -signal.SIGKILL, ended.stderr


if __name__ == "__main__":
    _, job, step, when = sys.argv
    owner, name, at = STEPS[step]
    setattr(owner, name, dying(getattr(owner, name), when, at))
    Executor(load_settings(), Requested.model_validate_json(job), threading.Event(), lambda _: None).run()
