"""How flow contenders are started, and what their figures mean."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bench.contenders.arguments import FlowArguments, flow_arguments, parse, parser
from bench.contenders.flows import (
    AIOKAFKA,
    ARROYO,
    FASTSTREAM,
    REGISTRY,
    ShortWindowError,
    Window,
    contender,
    require_window,
    shares_of_limit,
)
from bench.contenders.peers_environment import peer_version
from bench.harness.row import Bench
from bench.rows.row_2 import NOOP_PER_S, NOOP_RECORDS, SECONDS, SHORT_PER_S, SHORT_RECORDS, WARMING_PER_S

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
    slow_at_first = Window.lasting(100.0, 10.0, 8.0, warming_per_s=20.0)
    assert (slow_at_first.from_record, slow_at_first.to_record) == (200, 1000)


def test_a_long_window_is_given_up_after_half_as_long_again_and_a_minute() -> None:
    assert Window.lasting(7000.0, 5.0, 600.0).limit_s == pytest.approx(60 + 1.5 * 605)


def test_the_share_of_the_limit_is_the_mean_of_calls_in_flight() -> None:
    known = shares_of_limit({"records": 90, "seconds": 10, "calls_s": 99, "ordered_s": 99, "busy_s": 98}, 10)
    assert known == {"mean_ordered_s": 1.1, "share_of_limit": 0.98, "share_of_ordered_limit": 0.98}


def test_the_share_of_the_ordered_limit_is_less_by_what_calls_took_longer_than_they_were_told_to() -> None:
    known = shares_of_limit({"records": 90, "seconds": 10, "calls_s": 100, "ordered_s": 45, "busy_s": 98}, 10)
    assert known == {"mean_ordered_s": 0.5, "share_of_limit": 0.98, "share_of_ordered_limit": 0.98 * 0.45}


def test_a_window_that_was_too_short_fails_the_turn_but_for_the_smoke(tmp_path: Path) -> None:
    usual = Bench("", "", tmp_path, quick=False, full=False, say=lambda _: None)
    with pytest.raises(ShortWindowError, match=r"2\.50 s only, expected 3 s at least"):
        require_window(usual, Window(1, 2, 9.0), {"seconds": 2.5})
    require_window(usual, Window(1, 2, 9.0, least_s=0), {"seconds": 2.5})
    require_window(replace(usual, quick=True), Window(1, 2, 9.0), {"seconds": 0.1})


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


def test_row_2_has_records_enough_for_everybody() -> None:
    for flow, per_s in NOOP_PER_S.items():
        warming = WARMING_PER_S.get(flow, 0.0)
        assert Window.lasting(per_s, flow.warm_s, SECONDS, warming_per_s=warming).to_record <= NOOP_RECORDS
    for flow, per_s in SHORT_PER_S.items():
        assert Window.lasting(per_s, flow.warm_s, SECONDS).to_record <= SHORT_RECORDS
