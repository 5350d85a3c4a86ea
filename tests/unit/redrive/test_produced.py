"""When a record was produced, or that its producer's unit of time looks wrong."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from redrive.dead_letter import DeadLetter
from redrive.difference import Content
from wait_registry.records.operation import Place

SHOWN = datetime(2023, 11, 14, tzinfo=UTC)


@pytest.mark.parametrize(
    ("timestamp_ms", "unit"),
    [
        (1_700_000_000, "s"),
        (1_700_000_000_000_000, "µs"),
        (1_700_000_000_000_000_000, "ns"),
        (1_700_000_000_000, None),
        (946_684_799, None),
        (-62_135_596_800_000, None),
        (0, None),
        (-1, None),
        (None, None),
    ],
)
def test_the_unit_of_a_timestamp_that_looks_wrong_is_named(timestamp_ms: int | None, unit: str | None) -> None:
    expected = f"{timestamp_ms}, which looks like {unit} (2023-11-14 22:13:20 UTC): the producer must give ms"
    assert produced(timestamp_ms) == (SHOWN if unit is None else expected)


@pytest.mark.parametrize("timestamp_ms", [2**63 - 1, -(2**63)])
def test_a_timestamp_that_is_no_date_is_shown(timestamp_ms: int) -> None:
    assert produced(timestamp_ms) == f"{timestamp_ms}, which is no date in ms since 1970: the producer must give ms"


def produced(timestamp_ms: int | None) -> object:
    row = {"original_timestamp_ms": timestamp_ms, "original_timestamp": SHOWN}
    return DeadLetter(Place("t", 0, 0), Content(None, (), None), row).produced()
