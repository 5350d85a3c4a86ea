"""Play many seeds, and find the shortest run that breaks what a seed has broken."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from processor.protocol.partition import PartitionError
from processor.protocol.record import LifecycleError
from tests.simulation.run import Run
from tests.simulation.world import Breach

MOST_RECORDS = 12
MOST_STEPS = 400
# So many seeds are played for each shorter length.
TRIES = 60
# So many seeds are one task of a process.
CHUNK = 250
FAULTS = (Breach, LifecycleError, PartitionError)


@dataclass(frozen=True, slots=True)
class Found:
    """A breach: how to play it again, what it says, and the whole story."""

    seed: int
    most_records: int
    most_steps: int
    what: str
    story: tuple[str, ...]

    @property
    def kind(self) -> str:
        """Return what is broken, without the record and the numbers."""
        return re.sub(r"\(.*?\)|[\d.]+|\S*@\S*", "", self.what)

    def __str__(self) -> str:
        again = f"Run({self.seed}, most_records={self.most_records}, most_steps={self.most_steps})"
        return "\n".join([*self.story, f"{self.what}   [{again}]"])


def broken(seed: int, most_records: int = MOST_RECORDS, most_steps: int = MOST_STEPS) -> Found | None:
    """Play a seed; return what it breaks, None if it breaks nothing."""
    run = Run(seed, most_records, most_steps)
    try:
        run.play()
    except FAULTS as breach:
        return Found(seed, most_records, most_steps, f"{type(breach).__name__}: {breach}", tuple(run.story))
    return None


def chunks(first: int, count: int) -> list[range]:
    """Return seeds in parts of equal size, the last one perhaps shorter."""
    return [range(at, min(at + CHUNK, first + count)) for at in range(first, first + count, CHUNK)]


def repeat(seed: int) -> str:
    """Return the command that plays a seed again and tells its story."""
    return f"python -m tests.simulation --seed {seed}"


def breaches(seeds: Sequence[int]) -> tuple[int, list[Found]]:
    """Return how many seeds were played, and what those break that break anything."""
    return len(seeds), [found for seed in seeds if (found := broken(seed)) is not None]


def first_breach(seeds: Iterable[int]) -> Found | None:
    """Return what the first of these seeds that breaks anything breaks."""
    return next((found for seed in seeds if (found := broken(seed)) is not None), None)


def shortened(found: Found) -> Found:
    """Return a run with the fewest records that breaks the same, and of these one with the shortest story."""
    for records in range(1, found.most_records + 1):
        runs = [broken(seed, records, found.most_steps) for seed in (found.seed, *range(TRIES))]
        alike = [run for run in runs if run is not None and run.kind == found.kind]
        if alike:
            return _fewest_steps(min(alike, key=lambda run: len(run.story)))
    return found


def _fewest_steps(found: Found) -> Found:
    best = found
    steps = found.most_steps
    while steps > 0:
        steps = min(steps, len(best.story)) * 2 // 3
        again = broken(found.seed, found.most_records, steps)
        if again is not None and again.kind == found.kind and len(again.story) <= len(best.story):
            best = again
    return best
