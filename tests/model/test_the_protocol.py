"""The protocol, model-checked: within the bounds no order of steps breaks P1 to P4, and each safeguard is needed."""

from __future__ import annotations

import pytest

from tests.evidence import ROOT, clauses
from tests.model.design import DESIGN
from tests.model.explorer import Model
from tests.model.safeguards import SAFEGUARDS, Safeguard, breaks_as_said
from tests.model.tables import design_row, explored, safeguard_row

PAGE = (ROOT / "docs" / "protocol-model.md").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("model", DESIGN, ids=lambda model: model.name)
def test_no_order_of_steps_breaks_a_promise_and_all_fair_runs_end_well(model: Model) -> None:
    found = explored(model)
    assert found.violation is None, f"\n{found.violation}"
    assert design_row(model) in PAGE


@pytest.mark.parametrize("safeguard", SAFEGUARDS, ids=lambda safeguard: safeguard.name)
def test_a_safeguard_that_is_removed_is_missed_or_known_to_be_a_second_line(safeguard: Safeguard) -> None:
    found = explored(safeguard.without)
    assert breaks_as_said(safeguard, found), f"expected {safeguard.breaks}, found\n{found.violation}"
    assert safeguard_row(safeguard) in PAGE


def test_a_safeguard_has_a_clause_and_the_page_names_each_of_them() -> None:
    assert {safeguard.clause for safeguard in SAFEGUARDS} <= clauses().keys()
    named = [line.split("`")[1] for line in PAGE if line.startswith("| `")]
    assert sorted(named) == sorted(safeguard.name for safeguard in SAFEGUARDS)
