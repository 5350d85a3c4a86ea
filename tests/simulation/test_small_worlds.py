"""Every order of steps in the small worlds keeps the guarantees."""

from __future__ import annotations

import pytest

from tests.evidence import ROOT
from tests.simulation.processor_worlds import WORLDS as PROCESSOR_WORLDS
from tests.simulation.small_worlds import WORLDS, Small, explored, world_row

PAGE = (ROOT / "docs" / "simulation.md").read_text(encoding="utf-8").splitlines()


@pytest.mark.guarantee("P1.20", "P1.21")
@pytest.mark.parametrize("world", (*WORLDS, *PROCESSOR_WORLDS), ids=lambda world: world().name)
def test_no_order_of_steps_breaks_a_guarantee(world: Small) -> None:
    found = explored(world)
    assert found.violation is None, f"\n{found.violation}"
    assert not found.missed
    assert world_row(found) in PAGE
