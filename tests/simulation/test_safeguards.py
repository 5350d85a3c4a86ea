"""Each safeguard that the simulation shows, removed from the real code, is missed by a seed or in a small world."""

from __future__ import annotations

import pytest

from tests.evidence import ROOT
from tests.safeguards.catalogue import NOTHING, Safeguard, all_safeguards
from tests.simulation.removal_worlds import in_worlds, safeguard_row, world_without
from tests.simulation.seeds import first_breach
from tests.simulation.small_worlds import explored

PAGE = (ROOT / "docs" / "simulation.md").read_text(encoding="utf-8").splitlines()
MOST_SEEDS = 3_000
# Those that no seed misses: enough to see that nothing breaks at once.
FEW_SEEDS = 200


def _name(safeguard: Safeguard) -> str:
    return safeguard.name


@pytest.mark.parametrize("safeguard", [each for each in all_safeguards() if each.seeds], ids=_name)
def test_a_seed_finds_that_a_safeguard_is_missing(safeguard: Safeguard, monkeypatch: pytest.MonkeyPatch) -> None:
    safeguard.remove(monkeypatch)
    most = FEW_SEEDS if NOTHING in safeguard.breaks else MOST_SEEDS
    found = first_breach(range(safeguard.first, safeguard.first + most))
    assert safeguard.breaks_as_said(found.what if found else ""), f"expected {safeguard.breaks}, found {found}"


@pytest.mark.parametrize("safeguard", in_worlds(), ids=_name)
def test_a_small_world_finds_that_a_safeguard_is_missing(safeguard: Safeguard) -> None:
    found = explored(world_without(safeguard), safeguard)
    assert safeguard.breaks_as_said(found.violation.broken if found.violation else ""), (
        f"expected {safeguard.breaks}, found\n{found.violation}"
    )
    assert safeguard_row(safeguard, found) in PAGE


def test_the_page_names_the_safeguards_of_the_small_worlds() -> None:
    assert sorted(line.split("`")[1] for line in PAGE if line.startswith("| `")) == sorted(map(_name, in_worlds()))
