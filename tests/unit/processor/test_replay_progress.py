"""What is left of a replay's ranges."""

from __future__ import annotations

import pytest

from processor.intake.assigned_log import AssignedLog
from processor.replay.progress import Progress, Window

PLACE = ("orders", 0)


def progress(*steps: tuple[str, int]) -> Progress:
    """Return the progress of the range 10 to 19 after some steps."""
    found, log = Progress({PLACE: range(10, 20)}), AssignedLog(PLACE, 10)
    for step, offset in steps:
        if step == "poll":
            log.position = offset
            found.note_polled(PLACE, offset)
        elif step == "beyond":  # a record behind the range, which isn't handed on
            log.position = offset
        elif step == "end":
            log.reached_end(offset)
        elif step == "rewind":
            log.rewind(offset)
            found.note_rewound(PLACE, offset)
        else:
            found.note_settled(PLACE, offset)
        found.note_read(log)
    return found


@pytest.mark.guarantee("P1.34")
@pytest.mark.parametrize(
    ("steps", "left"),
    [
        pytest.param([], range(10, 20), id="nothing polled"),
        pytest.param([("poll", 20)], range(10, 20), id="polled, not settled"),
        pytest.param([("poll", 20), ("settle", 15)], range(15, 20), id="settled in part"),
        pytest.param([("poll", 20), ("settle", 20)], None, id="settled"),
        pytest.param([("poll", 15), ("settle", 15)], range(15, 20), id="read in part"),
        pytest.param([("poll", 15), ("settle", 15), ("end", 19)], range(15, 20), id="the end of the log is in it"),
        pytest.param([("poll", 15), ("settle", 15), ("end", 20)], None, id="no record before the end of the log"),
        pytest.param([("poll", 15), ("settle", 15), ("beyond", 31)], None, id="the next record is behind it"),
        pytest.param([("poll", 15), ("beyond", 31), ("settle", 14)], range(14, 20), id="the last record isn't settled"),
        pytest.param([("beyond", 31)], None, id="no record in it"),
        pytest.param([("poll", 20), ("rewind", 17), ("settle", 17)], range(17, 20), id="the rest isn't due yet"),
        pytest.param([("poll", 20), ("rewind", 17), ("poll", 20), ("settle", 20)], None, id="the rest was due"),
    ],
)
def test_a_range_is_left_from_its_first_unsettled_record(steps: list[tuple[str, int]], left: range | None) -> None:
    assert progress(*steps).left() == ({} if left is None else {PLACE: left})


def test_all_ranges_must_be_read() -> None:
    two = Progress({PLACE: range(10, 20), ("orders", 1): range(3)})
    logs = {place: AssignedLog(place, 0) for place in two.ranges}
    logs[PLACE].position = 20
    assert [two.note_read(log) for log in logs.values()] == [True, False]
    assert not two.reached(logs)
    logs["orders", 1].reached_end(3)
    assert [two.note_read(log) for log in logs.values()] == [False, True]
    assert two.reached(logs)


@pytest.mark.guarantee("P1.34")
def test_the_command_for_the_rest_has_the_window() -> None:
    rest = Progress({PLACE: range(10, 20)}, Window(1_700_000_000_001, 1_700_000_060_000)).rest()
    assert rest == (
        "waitreg replay --from-time 2023-11-14T22:13:20.001Z --to-time 2023-11-14T22:14:20.000Z orders:0:10-20"
    )
