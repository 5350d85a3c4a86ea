"""How flow contenders are started, and what their figures mean."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.contenders.arguments import FlowArguments, flow_arguments, parse, parser
from bench.contenders.flows import AIOKAFKA, ARROYO, FASTSTREAM, REGISTRY, Window, contender, in_flight_figures
from bench.contenders.peers_environment import peer_version
from bench.harness.judgement import judgements
from bench.harness.row import Bench, Round, Row
from bench.rows.row_1 import ROW as ROW_1
from bench.rows.row_2 import ROW as ROW_2
from bench.rows.row_3 import ROW as ROW_3
from bench.rows.row_7 import ROW as ROW_7

GIVEN = FlowArguments("localhost:9092", "orders", "shop", 50, "timed", 10, 20, 7.5)


def test_arguments_survive_the_command_line() -> None:
    assert parse("", GIVEN.command_line()) == GIVEN
    beside = FlowArguments("localhost:9092", "orders", "shop", 50, "noop", 10, 20, 7.5, 4711)
    assert parse("", beside.command_line()) == beside


@pytest.mark.parametrize(("first", "last", "in_flight"), [(0, 20, 1), (20, 20, 1), (5, 20, 0)])
def test_what_can_not_be_measured_is_refused(first: int, last: int, in_flight: int) -> None:
    given = FlowArguments("localhost:9092", "orders", "shop", in_flight, "noop", first, last, 7.5)
    with pytest.raises(ValueError, match="expected 1 or more"):
        flow_arguments(parser("").parse_args(given.command_line()))


def test_a_window_lasts_as_long_as_the_expected_rate_says() -> None:
    window = Window.lasting(100.0, 2.5, 10.0)
    assert (window.from_record, window.to_record) == (250, 1250)
    assert window.limit_s > 12.5
    assert Window.lasting(0.001, 1, 1).to_record == 2


def test_the_share_of_the_limit_is_the_mean_of_calls_in_flight() -> None:
    known = in_flight_figures({"records": 90, "seconds": 10, "calls_s": 99, "busy_s": 98}, 10)
    unknown = in_flight_figures({"records": 90, "seconds": 10, "calls_s": 99}, 10)
    assert (known["share_of_limit"], unknown["share_of_limit"]) == (0.98, 0.99)


def test_a_contender_has_its_own_group_at_each_turn_and_says_what_it_is() -> None:
    made = contender(REGISTRY, "orders", 50, "noop", Window(1, 2, 3.0), name="ours")
    assert (made.name, made.lacks, made.version) == ("ours", "", "")
    assert REGISTRY.program() == [sys.executable, "-m", "bench.contenders.registry"]
    for flow in (AIOKAFKA, ARROYO, FASTSTREAM):
        assert contender(flow, "orders", 50, "noop", Window(1, 2, 3.0)).lacks
        assert flow.version().split()[0] in {"aiokafka", "sentry-arroyo", "faststream"}


def test_a_peer_that_is_not_locked_has_no_version() -> None:
    with pytest.raises(KeyError, match="locks no kafkacat"):
        peer_version("kafkacat")


@pytest.mark.parametrize("row", [ROW_1, ROW_2, ROW_3, ROW_7], ids=lambda row: f"row {row.number}")
@pytest.mark.parametrize(("quick", "full"), [(True, False), (False, False), (False, True)])
def test_a_row_is_described_without_measuring_anything(row: Row, quick: bool, full: bool, tmp_path: Path) -> None:
    bench = Bench("", "", tmp_path, quick=quick, full=full, say=lambda _: None)
    cases = row.cases(bench)
    assert len({case.name for case in cases}) == len(cases)
    for case in cases:
        names = [contender.name for contender in case.contenders]
        assert len(set(names)) == len(names)
    assert not callable(row.lines)
    texts = [line.text for line in row.lines]
    assert len(set(texts)) == len(texts)
    assert list(tmp_path.iterdir()) == []


class _Everything(dict[str, float]):
    """Figures in which whatever is asked for is 7."""

    def __contains__(self, _: object) -> bool:
        return True

    def __missing__(self, _: str) -> float:
        return 7.0


@pytest.mark.parametrize("row", [ROW_1, ROW_2, ROW_3, ROW_7], ids=lambda row: f"row {row.number}")
def test_each_line_is_about_somebody_who_is_measured(row: Row, tmp_path: Path) -> None:
    bench = Bench("", "", tmp_path, quick=False, full=True, say=lambda _: None)
    measured = {
        (case.name, contender.name): [_Everything()] for case in row.cases(bench) for contender in case.contenders
    }
    found = judgements(row, [Round(1, measured)])
    assert [judgement.reason for judgement in found if judgement.spread is None] == []
