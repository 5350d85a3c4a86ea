"""What became of a redriven record, and when a job waits or pauses because of it or of its rate."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.jobs import requested
from wait_registry.clock import SystemClock
from wait_registry.dead_letters.outcome import (
    PROCEED,
    WAIT,
    WINDOW,
    Committed,
    Outcome,
    after_canary,
    after_comebacks,
    most_within,
    outcome,
)
from wait_registry.records.operation import Place
from wait_registry.settings.redrive import RedriveSettings
from wait_registry.settings.tree import Settings
from waitreg.redrive.outcome_check import OutcomeCheck, retries_s
from waitreg.redrive.progress import begun
from waitreg.redrive.rate_limit import RateLimit, chunk_size
from waitreg.redrive.refusals import Refusals

RULES = (30.0, RedriveSettings(canary_above=0.1, canary_timeout_s=60.0))


@pytest.mark.parametrize(
    ("seen", "became"),
    [
        ((False, False, False, True), Outcome.NOT_CONSUMED),
        ((False, True, False, False), Outcome.WAITING),
        ((True, True, False, True), Outcome.WAITING),
        ((True, False, False, True), Outcome.SETTLED),
        ((True, False, False, False), Outcome.UNKNOWN),
        ((None, False, False, True), Outcome.UNKNOWN),
        ((None, True, True, False), Outcome.DEAD_AGAIN),
    ],
)
def test_a_record_is_settled_only_if_all_was_seen(seen: tuple[bool | None, bool, bool, bool], became: Outcome) -> None:
    """``seen`` is whether it is consumed, waiting and a dead letter again, and whether the tables are complete."""
    assert outcome(*seen) is became


def test_an_offset_that_another_program_moved_proves_nothing_of_the_records_before_it() -> None:
    assert [Committed(7).consumed(offset) for offset in (6, 7)] == [True, False]
    assert [Committed(7, kept_below=5).consumed(offset) for offset in (4, 5, 7)] == [None, True, False]


@given(st.sets(st.integers(1, 60)), st.integers(1, 20))
def test_most_within_is_the_largest_count_of_all_windows(numbers: set[int], window: int) -> None:
    counts = [len(numbers & set(range(first, first + window))) for first in range(1, 61)]
    assert most_within(sorted(numbers), window) == max(counts)


@pytest.mark.parametrize(
    ("numbers", "pauses"),
    [
        (range(1, 51), False),
        (range(1, 52), True),
        (range(1, 1000, 2), False),
        ([*range(1, 1000, 2), 1000], True),
        ([*range(1, 41), *range(WINDOW + 1, WINDOW + 41)], False),
    ],
)
def test_more_than_half_of_a_hundred_in_a_row_pause_the_job(numbers: list[int], pauses: bool) -> None:
    verdict = after_comebacks(numbers, 0.5)
    assert verdict.proceeds is not pauses
    assert ("came back as dead letters" in verdict.reason) is pauses


def test_pause_above_one_never_pauses() -> None:
    assert after_comebacks(range(1, 1000), 1.0) == PROCEED


def test_a_canary_that_settled_lets_the_job_continue_after_the_retries() -> None:
    settled = {Outcome.SETTLED: 9, Outcome.DEAD_AGAIN: 1}
    assert after_canary(settled, 20, 29, *RULES) == WAIT
    assert after_canary(settled, 50, 30, *RULES) == PROCEED


@pytest.mark.parametrize("settled_s", [None, 0.0, 100.0])
def test_a_canary_that_comes_back_pauses_the_job_at_once(settled_s: float | None) -> None:
    verdict = after_canary({Outcome.DEAD_AGAIN: 2, Outcome.WAITING: 8}, 1, settled_s, *RULES)
    assert (verdict.proceeds, verdict.reason[:37]) == (False, "2 of 10 canary records came back as d")


def test_a_canary_that_does_not_settle_pauses_the_job() -> None:
    waiting = {Outcome.WAITING: 1, Outcome.SETTLED: 9}
    assert after_canary(waiting, 90, None, *RULES) == WAIT
    verdict = after_canary(waiting, 91, None, *RULES)
    assert verdict.reason == ("the canary wasn't settled in 90 s: 9 done, discarded or in a retry topic, 1 waiting")


CHUNKS = 200


@given(seed=st.integers(0, 2**32), rate=st.floats(0.1, 500), most=st.floats(0, 0.95))
def test_the_rate_is_kept_within_five_percent(seed: int, rate: float, most: float) -> None:
    """``most``: the longest that a chunk takes, as a part of its time."""
    dice, now_s, size = random.Random(seed), 0.0, max(1, int(rate))
    limit = RateLimit(now_s)
    for _ in range(CHUNKS):
        now_s += dice.uniform(0, most) * size / rate
        now_s += limit.pause_s(size, rate, now_s)
    assert now_s == pytest.approx(CHUNKS * size / rate, rel=0.05)


def test_lost_time_is_not_made_up_for() -> None:
    limit = RateLimit(0.0)
    assert limit.pause_s(10, 10.0, 100.0) == 0
    assert limit.pause_s(10, 10.0, 100.2) == pytest.approx(0.8)
    assert limit.pause_s(5, 10.0, 101.0) == pytest.approx(0.5)


def test_one_pause_is_skipped_and_its_time_is_waited_for_later() -> None:
    """More dead letters than the dry run counted may follow the one that was thought to be the last."""
    limit = RateLimit(0.0)
    assert limit.pause_s(10, 10.0, 0.0, is_last=True) == 0
    assert limit.pause_s(10, 10.0, 0.0, is_last=True) == pytest.approx(2.0)
    assert limit.pause_s(10, 10.0, 2.0, is_last=True) == pytest.approx(1.0)


@given(seed=st.integers(0, 2**32), rate=st.floats(0.1, 10_000), most=st.floats(0, 3))
def test_a_second_has_its_own_records_and_less_than_two_chunks_more(seed: int, rate: float, most: float) -> None:
    """``most``: the longest that a chunk takes, as a part of its time: slow ones are followed by others at once."""
    dice, now_s, size = random.Random(seed), 0.0, chunk_size(rate)
    limit, sent = RateLimit(now_s), list[float]()
    for _ in range(CHUNKS):
        now_s += dice.choice((0, most)) * size / rate
        sent.append(now_s)
        now_s += limit.pause_s(size, rate, now_s)
    for first in sent:
        assert size * sum(first <= each < first + 1 for each in sent) < max(rate, size) + 2 * size


@pytest.mark.parametrize(
    ("rate", "size"), [(0.1, 1), (1.0, 1), (3.0, 3), (24.9, 24), (50.0, 25), (100.0, 25), (500.0, 125), (1e4, 2_500)]
)
def test_a_chunk_has_the_records_of_a_quarter_second_or_a_few(rate: float, size: int) -> None:
    assert chunk_size(rate) == size


@pytest.mark.parametrize(
    ("count", "bad", "tries"),
    [
        (2_000, [], 1),
        (2_000, [0], 22),
        (2_000, [1_999], 24),
        (2_000, [700, 701], 37),
        (8, range(8), 25),
    ],
)
def test_refused_records_are_found_by_halving(count: int, bad: Sequence[int], tries: int) -> None:
    found, begin, made = Refusals(), 0, 0
    while begin < count:
        tried, made = range(begin, min(count, begin + found.most)), made + 1
        places = [Place("orders.dlq", 0, offset) for offset in tried]
        if any(place.offset in bad for place in places if place not in found.places):
            found = found.after_refusal(places)
        else:
            found, begin = found.after_success(), tried.stop
    assert sorted(place.offset for place in found.places) == list(bad)
    assert made == tries


@pytest.mark.parametrize(
    ("canary", "sent", "left"),
    [
        (None, 5, None),
        (10, 0, 10),
        (10, 9, 1),
        (10, 10, 0),
        # It was settled before the executor died, or no other record would have been sent.
        (10, 11, None),
    ],
)
def test_a_job_waits_only_when_exactly_its_canary_is_out(canary: int | None, sent: int, left: int | None) -> None:
    unused: Any = None
    job = requested("shop", canary=canary)
    check = OutcomeCheck(Settings(), job, unused, SystemClock(), unused)
    assert check.canary_left(replace(begun(job), sent=sent)) == left


def test_retries_take_the_sum_of_the_delays_of_the_groups_own_topics() -> None:
    names = ["orders", *(f"orders.{own}" for own in ("shop.retry.10s", "shop.retry.2m", "other.retry.1h"))]
    names.append("refunds.shop.retry.5s")
    assert retries_s(names, ["orders", "refunds"], "shop") == 130
    assert retries_s(names, [], "shop") == 0
