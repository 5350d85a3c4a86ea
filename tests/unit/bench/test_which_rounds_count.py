"""A round is measured once for a commit on a machine; other commits' and machines' figures stay out of its tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from bench.harness.measurement import Entry, Origin
from bench.harness.rounds import complete_rounds, rounds_of
from bench.harness.row import NotMeasuredError
from tests.unit.bench.made_up import HERE, end, stamp, turn

ELSEWHERE = [replace(HERE, commit="def456"), replace(HERE, machine="another one"), replace(HERE, full=False)]


def played(number: int, run: str = "run-1", rate: float = 1.0, origin: Origin = HERE) -> list[Entry]:
    stamped = stamp(run, origin)
    return [turn(figures={"records_per_s": rate}, number=number, stamped=stamped), end(number, stamped=stamped)]


def rates(entries: Sequence[Entry]) -> list[float]:
    return [playing.as_round().figure("no-op", "registry", "records_per_s") for playing in rounds_of(entries, 2, HERE)]


def test_a_round_that_was_played_to_its_end_is_complete() -> None:
    assert complete_rounds([*played(1), *played(3)], 2, HERE) == {1, 3}


def test_a_round_that_was_interrupted_is_not() -> None:
    assert complete_rounds([*played(1), turn(number=2)], 2, HERE) == {1}


@pytest.mark.parametrize("how", [{"failures": ["no-op, registry: gone"]}, {"broken": "the broker ended"}])
def test_a_round_in_which_something_failed_is_not(how: dict[str, object]) -> None:
    assert complete_rounds([*played(1), turn(number=2), end(2, **how)], 2, HERE) == {1}  # type: ignore[arg-type]


@pytest.mark.parametrize("origin", ELSEWHERE)
def test_a_round_of_another_commit_machine_or_size_does_not_count(origin: Origin) -> None:
    entries = [*played(1, origin=origin), *played(2)]
    assert complete_rounds(entries, 2, HERE) == {2}
    assert [playing.number for playing in rounds_of(entries, 2, HERE)] == [2]


def test_a_round_of_another_row_does_not_count() -> None:
    assert complete_rounds(played(1), 3, HERE) == set()


def test_of_two_complete_playings_the_later_counts() -> None:
    assert rates([*played(1, rate=1.0), *played(2, rate=2.0), *played(1, "run-2", rate=3.0)]) == [3.0, 2.0]


def test_an_interrupted_playing_never_replaces_a_complete_one() -> None:
    again = turn(figures={"records_per_s": 9.0}, stamped=stamp("run-2"))
    assert rates([*played(1), again]) == [1.0]


def test_an_interrupted_playing_counts_where_there_is_nothing_else() -> None:
    assert rates([turn(figures={"records_per_s": 9.0})]) == [9.0]


def test_figures_of_two_runs_of_a_round_never_meet() -> None:
    (playing,) = rounds_of([turn(turn=1), *played(1, "run-2")], 2, HERE)
    assert [line.stamp.run for line in playing.turns] == ["run-2"]


def test_a_figure_is_the_median_over_the_turns() -> None:
    turns = [turn(figures={"records_per_s": rate}, turn=number) for number, rate in enumerate((5.0, 1.0, 2.0), 1)]
    assert rates([*turns, end()]) == [2.0]


def test_a_turn_that_succeeded_when_tried_again_has_not_failed() -> None:
    tried: list[Entry] = [turn(failure="gone"), turn(figures={"records_per_s": 4.0}, attempt=2), end()]
    assert rates(tried) == [4.0]


def test_a_turn_that_failed_twice_takes_the_contenders_figure_with_it() -> None:
    tried: list[Entry] = [
        turn(turn=1),
        turn(turn=2, failure="gone"),
        turn(turn=2, attempt=2, failure="gone again"),
        end(),
    ]
    (playing,) = rounds_of(tried, 2, HERE)
    with pytest.raises(NotMeasuredError, match="no-op, registry: gone again") as raised:
        playing.as_round().figure("no-op", "registry", "records_per_s")
    assert raised.value.failed


def test_what_a_broken_round_lacks_has_failed_and_what_it_has_counts() -> None:
    (playing,) = rounds_of([turn(), end(broken="the broker ended")], 2, HERE)
    round_ = playing.as_round()
    assert round_.has("no-op", "registry", "records_per_s")
    with pytest.raises(NotMeasuredError, match="the broker ended") as raised:
        round_.figure("no-op", "bare loop", "records_per_s")
    assert raised.value.failed


def test_a_figure_that_nobody_measured_has_not_failed() -> None:
    (playing,) = rounds_of(played(1), 2, HERE)
    with pytest.raises(NotMeasuredError, match="no p99_ms") as raised:
        playing.as_round().figure("no-op", "registry", "p99_ms")
    assert not raised.value.failed


def test_a_ratio_by_nothing_is_not_measured() -> None:
    entries: list[Entry] = [turn(), turn("bare loop", {"records_per_s": 0.0}), end()]
    (playing,) = rounds_of(entries, 2, HERE)
    with pytest.raises(NotMeasuredError, match="is 0"):
        playing.as_round().ratio("no-op", "records_per_s", "registry", to="bare loop")
