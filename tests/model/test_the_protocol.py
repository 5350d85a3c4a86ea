"""The protocol, model-checked: within the bounds every order of steps keeps P1 to P4, and each safeguard is needed."""

from __future__ import annotations

import pytest

from tests.model.design import DESIGN
from tests.model.explorer import Model, explore
from tests.model.safeguards import SAFEGUARDS, Safeguard, breaks_as_said


@pytest.mark.parametrize("model", DESIGN, ids=lambda model: model.name)
def test_no_order_of_steps_breaks_a_promise_and_all_fair_runs_end_well(model: Model) -> None:
    explored = explore(model)
    assert explored.violation is None, f"\n{explored.violation}"
    assert explored.states > 1_000, "bounds within which nothing can happen show nothing"


@pytest.mark.parametrize("safeguard", SAFEGUARDS, ids=lambda safeguard: safeguard.name)
def test_a_safeguard_that_is_removed_is_missed_or_known_to_be_a_second_line(safeguard: Safeguard) -> None:
    explored = explore(safeguard.without)
    assert breaks_as_said(safeguard, explored), f"expected {safeguard.breaks}, found\n{explored.violation}"
