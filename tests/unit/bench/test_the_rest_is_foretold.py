"""Lines of progress say how long it has taken, and from the last run how long the rest will take."""

from __future__ import annotations

from dataclasses import replace

from bench.harness.measurement import Entry
from bench.harness.progress import Progress, seconds_of_rows
from tests.unit.bench.made_up import HERE, end, stamp, turn


class Clock:
    """Stands still until it is moved."""

    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def test_elapsed_and_rest() -> None:
    clock, told = Clock(), list[str]()
    progress = Progress({1: 120.0, 2: 300.0}, told.append, clock)
    progress.plan([1, 2, 2])
    progress.begin()
    progress.tell("first")
    clock.now_s += 60
    progress.tell("later")
    clock.now_s += 90
    assert progress.end(1) == 150.0
    progress.begin()
    progress.tell("second row")
    assert told == [
        "[0 s, about 12.0 min to go] first",
        "[1.0 min, about 11.0 min to go] later",
        "[2.5 min, about 10.0 min to go] second row",
    ]


def test_a_round_says_how_long_the_next_of_its_row_will_take() -> None:
    clock, told = Clock(), list[str]()
    progress = Progress({}, told.append, clock)
    progress.plan([1, 1])
    progress.begin()
    progress.tell("nothing is known")
    clock.now_s += 120
    progress.end(1)
    progress.begin()
    progress.tell("the last one")
    progress.end(1)
    progress.tell("over")
    assert [line.partition("]")[0] for line in told] == [
        "[0 s, rest unknown",
        "[2.0 min, about 2.0 min to go",
        "[2.0 min, nothing to go",
    ]


def test_what_isnt_known_is_said() -> None:
    told: list[str] = []
    progress = Progress({1: 60.0}, told.append, Clock())
    progress.plan([1, 2])
    progress.tell("begin")
    assert told == ["[0 s, more than 1.0 min to go] begin"]


def test_the_last_complete_round_of_the_same_size_is_what_is_known() -> None:
    other_size = stamp(origin=replace(HERE, full=False))
    entries: list[Entry] = [
        end(1, row=1, seconds=50),
        end(2, row=1, seconds=70),
        end(3, row=1, seconds=1, failures=["x"]),
        end(1, row=2, seconds=9, stamped=other_size),
        turn(row=3),
    ]
    assert seconds_of_rows(entries, full=True) == {1: 70.0}
    assert seconds_of_rows(entries, full=False) == {2: 9.0}
