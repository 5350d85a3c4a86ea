"""A transaction that stays open in a consumed topic is warned of, once, and nothing else is taken for one."""

from __future__ import annotations

import asyncio

import pytest

from processor.intake.assigned_log import AssignedLog
from processor.intake.open_transactions import OPEN_FOR_S, OpenTransactions
from tests.unit.processor.parts import PLACE, HaltedClock


def warnings(caplog: pytest.LogCaptureFixture, stable_end: int, looks: list[tuple[float, int]], end: int = 30) -> int:
    """Return how many warnings come of looks: so long after the one before, at a position."""
    clock, owner = HaltedClock(), AssignedLog(PLACE, 17)
    owner.note_end(end)
    watch = OpenTransactions({PLACE: owner}, lambda places: dict.fromkeys(places, stable_end), clock.monotonic)
    for seconds, position in looks:
        clock.now_s += seconds
        owner.position = position
        asyncio.run(watch.run_once())
    return caplog.text.count("no record of input[0] could be read for 60 s, although its log has 13 more offsets")


@pytest.mark.parametrize(
    ("stable_end", "looks", "count"),
    [
        pytest.param(17, [(0, 17), (OPEN_FOR_S, 17), (OPEN_FOR_S, 17)], 1, id="a transaction stays open"),
        pytest.param(17, [(0, 17), (OPEN_FOR_S - 1, 17)], 0, id="not for long"),
        pytest.param(17, [(0, 16), (OPEN_FOR_S, 17)], 0, id="a record came meanwhile"),
        pytest.param(18, [(0, 17), (OPEN_FOR_S, 17)], 0, id="a record could be read"),
        pytest.param(30, [(0, 30), (OPEN_FOR_S, 30)], 0, id="nothing is left"),
    ],
)
def test_only_a_partition_that_can_not_be_read_is_warned_of(
    stable_end: int, looks: list[tuple[float, int]], count: int, caplog: pytest.LogCaptureFixture
) -> None:
    assert warnings(caplog, stable_end, looks) == count
