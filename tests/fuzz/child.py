"""One target under atheris, in a process of its own: libFuzzer ends the process it runs in.

python -m tests.fuzz.child TARGET [libFuzzer's options, folders or files]
"""

from __future__ import annotations

import importlib
import shlex
import sys
from collections.abc import Callable
from typing import Any

# Not one of the locked packages: setup/fuzz.sh puts it alongside them.
atheris: Any = importlib.import_module("atheris")

INSTRUMENTED = ["wait_registry", "sweeper", "sink"]
# Measuring costs several times what reading does.
MEASURED_ONE_IN = 512


def main(name: str, *options: str) -> None:
    """Fuzz until libFuzzer ends the process, with another status than 0 where it found something."""
    with atheris.instrument_imports(include=INSTRUMENTED):
        target = importlib.import_module("tests.fuzz.targets").TARGETS[name]
    # Merging, libFuzzer starts the process again by a shell, as its first argument says.
    itself = shlex.join([sys.executable, "-m", "tests.fuzz.child", name])
    atheris.Setup([itself, *options], _checked(target))
    atheris.Fuzz()


def _checked(target: Any) -> Callable[[bytes], None]:
    count = 0

    def check(data: bytes) -> None:
        nonlocal count
        count += 1
        target.check(data)
        if count % MEASURED_ONE_IN == 0:
            target.require_bounded(data)

    return check


if __name__ == "__main__":
    main(*sys.argv[1:])
