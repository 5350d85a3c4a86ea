"""One target under atheris, in a process of its own: libFuzzer ends the process it runs in.

python -m tests.fuzz.child TARGET [libFuzzer's options, folders or files]
"""

from __future__ import annotations

import importlib
import shlex
import sys
from collections.abc import Callable
from random import Random
from typing import Any

from tests.fuzz.record_bytes import mutated
from tests.fuzz.target import Target, require_bounded

# Not one of the locked packages: setup/fuzz.sh puts it alongside them.
atheris: Any = importlib.import_module("atheris")

INSTRUMENTED = ["wait_registry", "sweeper", "sink"]
# Measuring costs several times what reading does.
MEASURED_ONE_IN = 512


def main(arguments: list[str]) -> None:
    """Fuzz until libFuzzer ends the process, with another status than 0 where it found something."""
    with atheris.instrument_imports(include=INSTRUMENTED):
        target: Target = importlib.import_module("tests.fuzz.targets").TARGETS[arguments[1]]
    # Merging, libFuzzer starts the process again by a shell, as its first argument says.
    itself = shlex.join([sys.executable, "-m", "tests.fuzz.child", target.name])
    mutator = _mutator(target) if target.records else None
    atheris.Setup([itself, *arguments[2:]], _checked(target), custom_mutator=mutator)
    atheris.Fuzz()


def _checked(target: Target) -> Callable[[bytes], None]:
    count = 0

    def check(data: bytes) -> None:
        nonlocal count
        count += 1
        target.check(data)
        if count % MEASURED_ONE_IN == 0:
            require_bounded(target, data)

    return check


def _mutator(target: Target) -> Callable[[bytes, int, int], bytes]:
    def part(data: bytes, size: int) -> bytes:
        return bytes(atheris.Mutate(data, size))

    def mutate(data: bytes, max_size: int, seed: int) -> bytes:
        random = Random(seed)
        if random.random() < 0.5:
            return part(data, max_size)
        return mutated(data, random, target.words, part)[:max_size]

    return mutate


if __name__ == "__main__":
    main(sys.argv)
