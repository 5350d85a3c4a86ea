"""Cells of a table: numbers, long texts and states are shown as what they are."""

from __future__ import annotations

import pytest

from console.cells import Cell, cells


@pytest.mark.parametrize(
    ("column", "value", "cell"),
    [
        ("records", 7, Cell("7", kind="number")),
        ("finished", True, Cell("yes")),
        ("message", "no answer from the payment service within thirty seconds", None),
        ("wait", "x" * 60, Cell("x" * 60)),
        ("reason", "failed", Cell("failed", tone="bad")),
        ("reason", "something else", Cell("something else")),
        ("state", "open", Cell("open", tone="warn")),
        ("by", "open", Cell("open")),
    ],
)
def test_a_value_has_the_form_of_its_kind(column: str, value: object, cell: Cell | None) -> None:
    (found,) = cells([column], [value])
    assert found == (cell or Cell(str(value), kind="long"))


def test_a_state_is_always_a_word() -> None:
    for column, value in [("state", "redriven"), ("reason", "expired"), ("result", "partial"), ("outcome", "waiting")]:
        (found,) = cells([column], [value])
        assert (found.text, found.tone != "") == (value, True)
