"""Each safeguard of the processor, taken out of the real engine, is missed by a seed, or the table says why not."""

from __future__ import annotations

import pytest

from tests.evidence import clauses
from tests.simulation.safeguards import PROCESSOR, Safeguard
from tests.simulation.seeds import first_breach

MOST_SEEDS = 3_000
# Those that no seed misses: enough to see that the rule's absence breaks nothing at once.
FEW_SEEDS = 200


@pytest.mark.parametrize("safeguard", PROCESSOR, ids=lambda safeguard: safeguard.name)
def test_seeds_find_that_a_safeguard_is_missing(safeguard: Safeguard, monkeypatch: pytest.MonkeyPatch) -> None:
    safeguard.remove(monkeypatch)
    most = FEW_SEEDS if safeguard.breaks is None else MOST_SEEDS
    found = first_breach(range(safeguard.first, safeguard.first + most))
    if safeguard.breaks is None:
        assert safeguard.since and found is None, found
    else:
        assert found is not None, f"{MOST_SEEDS} seeds found nothing"
        assert safeguard.breaks in found.what, found.what


def test_each_safeguard_has_a_clause() -> None:
    assert {safeguard.clause for safeguard in PROCESSOR} <= clauses().keys()
