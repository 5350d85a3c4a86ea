"""The real engine in a simulated world: no seed breaks a guarantee."""

from __future__ import annotations

import pytest

from tests.simulation.run import Run
from tests.simulation.seeds import first_breach, shortened

SEEDS = 2_000
CHUNK = 250


@pytest.mark.guarantee("P1.1", "P1.2", "P1.3", "P1.4", "P1.5", "P1.6", "P2.1", "P2.2", "P3.16", "P7.1", "P7.2")
@pytest.mark.guarantee("P1.18", "P1.19", "P1.20", "P1.21", "P1.22", "P2.6", "P7.15")
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_no_seed_breaks_a_guarantee(first: int) -> None:
    found = first_breach(range(first, first + CHUNK))
    assert found is None, f"\n{found}\n\nshorter:\n{shortened(found)}"


def test_a_seed_replays_exactly() -> None:
    stories = []
    for _ in range(2):
        run = Run(17)
        run.play()
        stories.append(run.story)
    assert stories[0] == stories[1]
