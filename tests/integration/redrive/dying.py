"""An executor that is killed at a step: `python -m tests.integration.redrive.dying JOB STEP`; settings by environment.

The steps are methods of the product, each `before` or `after` its call: the process kills itself there.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any, Final

from redrive.executor import Executor
from redrive.view import View
from wait_registry.kafka.fenced_producer import FencedProducer
from wait_registry.kafka.tail_reader import TailReader
from wait_registry.records.operation import Requested
from wait_registry.settings.loading import load_settings

# A step that comes several times is the second one: the first writes that the job begins.
STEPS: Final[dict[str, tuple[Any, str, int]]] = {
    "fence": (FencedProducer, "fence", 1),
    "view": (View, "__init__", 1),
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


if __name__ == "__main__":
    _, job, step, when = sys.argv
    owner, name, at = STEPS[step]
    setattr(owner, name, dying(getattr(owner, name), when, at))
    Executor(load_settings(), Requested.model_validate_json(job), threading.Event(), lambda _: None).run()
