"""Every order of steps in the small worlds keeps the guarantees, and each safeguard is needed."""

from __future__ import annotations

import pytest

from tests.evidence import ROOT, clauses
from tests.simulation.processor_worlds import ENGINE
from tests.simulation.processor_worlds import WORLDS as PROCESSOR_WORLDS
from tests.simulation.small_worlds import (
    REDRIVE,
    SINK,
    SWEEPER,
    WORLDS,
    Safeguard,
    Small,
    explored,
    safeguard_row,
    world_row,
)

PAGE = (ROOT / "docs" / "simulation.md").read_text(encoding="utf-8").splitlines()
SAFEGUARDS = (*SINK, *SWEEPER, *REDRIVE, *ENGINE)


@pytest.mark.parametrize("world", (*WORLDS, *PROCESSOR_WORLDS), ids=lambda world: world().name)
def test_no_order_of_steps_breaks_a_guarantee(world: Small) -> None:
    found = explored(world)
    assert found.violation is None, f"\n{found.violation}"
    assert not found.missed
    assert world_row(found) in PAGE


@pytest.mark.parametrize("safeguard", SAFEGUARDS, ids=lambda safeguard: safeguard.name)
def test_a_missing_safeguard_is_found(safeguard: Safeguard) -> None:
    found = explored(safeguard.world, safeguard.remove)
    assert safeguard.breaks_as_said(found), f"expected {safeguard.breaks}, found\n{found.violation}"
    assert safeguard.breaks or safeguard.since
    assert safeguard_row(safeguard, found) in PAGE


def test_each_safeguard_has_a_clause_and_is_on_the_page() -> None:
    assert {safeguard.clause for safeguard in SAFEGUARDS} <= clauses().keys()
    named = [line.split("`")[1] for line in PAGE if line.startswith("| `")]
    assert sorted(named) == sorted(safeguard.name for safeguard in SAFEGUARDS)
