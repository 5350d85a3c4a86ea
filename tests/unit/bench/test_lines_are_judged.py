"""A line shows the median of its rounds' values with least and most, and is judged by the median."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.harness.judgement import judged, judgements
from bench.harness.row import Line, NotMeasuredError, Round, Row
from bench.harness.spread import Spread, spread_of
from bench.harness.target import Target, at_least, at_most


def rounds(*values: float | str) -> list[Round]:
    """Return rounds with one figure each; a text is why it failed."""
    key = ("c", "a")
    return [
        Round(number, {}, {key: value}) if isinstance(value, str) else Round(number, {key: [{"x": value}]})
        for number, value in enumerate(values, 1)
    ]


def line(target: Target | None = None) -> Line:
    return Line("how many", lambda round_: round_.figure("c", "a", "x"), "records/s", target)


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=9))
def test_the_median_lies_between_the_least_and_the_most(values: list[float]) -> None:
    spread = spread_of(values)
    assert spread.least == min(values) <= spread.median <= spread.most == max(values)
    assert sum(value <= spread.median for value in values) * 2 >= len(values)
    assert sum(value >= spread.median for value in values) * 2 >= len(values)


def test_a_spread_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no values"):
        spread_of([])


def test_the_spread_of_a_ratio_is_that_of_the_rounds_ratios() -> None:
    ours, peers = (10.0, 40.0, 30.0), (5.0, 10.0, 30.0)
    measured = [
        Round(number, {("c", "ours"): [{"x": our}], ("c", "peer"): [{"x": peer}]})
        for number, (our, peer) in enumerate(zip(ours, peers, strict=True), 1)
    ]
    ratio = Line("ratio", lambda round_: round_.ratio("c", "x", "ours", to="peer"))
    assert judged(ratio, measured).spread == Spread(2.0, 1.0, 4.0, 3)  # not 30 / 10, the ratio of the medians


@pytest.mark.parametrize(
    ("target", "values", "verdict"),
    [
        (at_least(2.0), (1.0, 2.0, 3.0), "met"),
        (at_least(2.0), (1.0, 1.9, 3.0), "not met"),
        (at_most(2.0), (1.0, 2.0, 3.0), "met"),
        (at_most(2.0), (1.0, 2.1, 3.0), "not met"),
        (None, (1.0, 2.0, 3.0), ""),
    ],
)
def test_the_median_decides(target: Target | None, values: Sequence[float], verdict: str) -> None:
    assert judged(line(target), rounds(*values)).verdict == verdict


def test_a_line_that_failed_in_one_round_has_failed_whatever_the_others_say() -> None:
    result = judged(line(at_least(1.0)), rounds(5.0, "it hung", 7.0))
    assert result.verdict == "failed"
    assert result.reason == "round 2: c, a: it hung"
    assert result.spread == Spread(6.0, 5.0, 7.0, 2)


def test_a_line_without_a_figure_is_not_measured() -> None:
    result = judged(line(at_least(1.0)), [Round(1, {})])
    assert (result.verdict, result.spread) == ("not measured", None)
    assert "no x" in result.reason


def test_a_round_that_was_never_to_have_it_is_left_out() -> None:
    some = Line("some", lambda round_: None if round_.number == 1 else round_.figure("c", "a", "x"), target=at_most(3))
    assert judged(some, rounds(9.0, 2.0)).spread == Spread(2.0, 2.0, 2.0, 1)
    assert judged(some, rounds(9.0)).verdict == "not measured"


def test_a_line_that_cannot_be_worked_out_has_failed_and_the_others_have_not() -> None:
    wrong = Line("wrong", lambda _: 1 / 0)
    row = Row(1, "a row", "", lambda _: (), [wrong, line()])
    assert [result.verdict for result in judgements(row, rounds(1.0))] == ["failed", ""]


def test_lines_may_depend_on_what_was_measured() -> None:
    row = Row(1, "a row", "", lambda _: (), lambda measured: [line() for _ in measured])
    assert len(judgements(row, rounds(1.0, 2.0))) == 2


def test_lines_that_cannot_be_made_are_one_that_failed() -> None:
    def lines(_: Sequence[Round]) -> Sequence[Line]:
        raise NotMeasuredError("nothing there", failed=False)

    (result,) = judgements(Row(1, "a row", "", lambda _: (), lines), rounds(1.0))
    assert result.verdict == "failed"
    assert "nothing there" in result.reason
