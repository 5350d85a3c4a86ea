"""The smoke of a row plays it in small and works out its lines and plots, so that a row can't rot."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bench.harness.row import Axis, Bench, Case, Figures, Line, Plot
from bench.harness.smoke import smoke
from bench.harness.target import at_least
from tests.unit.bench.made_up import contender, row


def sized(bench: Bench) -> Figures:
    assert bench.kafka == "kafka:9092"
    return {"records": bench.size(quick=10, usual=1000, full=9000)}


LINE = Line("records", lambda round_: round_.figure("c", "A", "records"), target=at_least(1000))
PLOT = Plot("p", "P", Axis("x"), Axis("y"), lambda round_: {"a": [(1, round_.figure("c", "A", "records"))]})


def test_it_is_as_small_as_it_gets(tmp_path: Path) -> None:
    result = smoke(
        replace(row([Case("c", [contender("A", sized)])], [LINE]), plots=(PLOT,)), "kafka:9092", "", tmp_path
    )
    assert result.failures == []
    assert result.round.figure("c", "A", "records") == 10
    assert [one.verdict for one in result.judgements] == ["not met"]
    assert len(result.plots) == 1


def test_what_fails_is_said(tmp_path: Path) -> None:
    result = smoke(row([Case("c", [contender("A", lambda _: {})])], [LINE]), "kafka:9092", "", tmp_path)
    assert [failure.partition(":")[0] for failure in result.failures] == ["c, A"]
    assert [one.verdict for one in result.judgements] == ["failed"]


def test_sizes_follow_the_kind_of_run(tmp_path: Path) -> None:
    usual = Bench("", "", tmp_path, quick=False, full=False, say=print)
    assert [bench.size(1, 2, 3) for bench in (replace(usual, quick=True), usual, replace(usual, full=True))] == [
        1,
        2,
        3,
    ]
    assert replace(usual, full=True).size(1, 2) == 2
