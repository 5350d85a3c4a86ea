"""While long calls hold nearly all worker slots, the oldest is cancelled, and its record goes to another topic."""

from __future__ import annotations

import pytest

from processor.dispatch.blocked_calls import HELD_SHARE, TOKEN_LASTS_S, BlockedCalls
from processor.events import Done, Failed
from processor.lifecycle import Entry, Step
from tests.unit.processor.engine_bench import play, stories
from tests.unit.processor.parts import entries

AFTER_S = 60.0
REFUSED = Failed(ValueError("refused"))
AWAY = Failed(TimeoutError("away"), retriable=True)


def begun(blocked: BlockedCalls, count: int, now_s: float = 0.0) -> list[Entry]:
    started = entries(*range(count))
    for entry in started:
        entry.take(Step.RELEASE)
        entry.take(Step.START)
    blocked.calls.started(started, count, now_s)
    return started


def answered(blocked: BlockedCalls, count: int, now_s: float, result: Done | Failed = Done()) -> None:  # noqa: B008
    ended = [(entry, result) for entry in begun(blocked, count, now_s)]
    blocked.calls.ended(ended, now_s)
    blocked.ended(ended, now_s)


@pytest.mark.parametrize("slots", [1, 2, 10, 25])
def test_it_needs_nine_slots_in_ten(slots: int) -> None:
    fewest = -(-slots * HELD_SHARE // 1)
    for old in range(slots + 1):
        blocked = BlockedCalls(AFTER_S)
        answered(blocked, 1, 0)
        begun(blocked, old)
        assert (blocked.choose(slots, 0, AFTER_S + 1) is not None) is (old >= fewest)


@pytest.mark.guarantee("P7.18")
def test_the_oldest_call_is_chosen_and_no_other_one_until_it_ends() -> None:
    blocked = BlockedCalls(AFTER_S)
    answered(blocked, 5, 0)
    (oldest,), (other,) = begun(blocked, 1, 1), begun(blocked, 1, 2)
    assert blocked.choose(2, 0, 100) is oldest
    assert blocked.choose(2, 0, 100) is None
    ((_, result),) = blocked.ended([(oldest, None)], 100)
    assert isinstance(result, Failed)
    assert (result.reason, result.retriable, result.ours) == ("blocked", True, True)
    blocked.calls.ended([(oldest, result)], 100)
    assert blocked.choose(1, 0, 100) is other
    assert blocked.cancelled == 1


@pytest.mark.guarantee("P7.18")
def test_a_call_that_answers_in_spite_of_its_cancellation_keeps_its_answer() -> None:
    blocked = BlockedCalls(AFTER_S)
    answered(blocked, 1, 0)
    (one,) = begun(blocked, 1)
    assert blocked.choose(1, 0, 100) is one
    assert blocked.ended([(one, Done())], 100) == [(one, Done())]
    assert blocked.cancelled == 0


def test_nothing_is_cancelled_while_a_call_keeps_its_slot_after_its_end() -> None:
    blocked = BlockedCalls(AFTER_S)
    answered(blocked, 1, 0)
    begun(blocked, 10)
    assert blocked.choose(10, 1, 100) is None
    assert blocked.choose(10, 0, 100) is not None


@pytest.mark.guarantee("P7.18")
@pytest.mark.parametrize(("result", "counts"), [(Done(), True), (REFUSED, True), (AWAY, False)])
def test_each_cancellation_takes_a_token_of_an_answered_call(result: Done | Failed, counts: bool) -> None:
    blocked = BlockedCalls(AFTER_S)
    answered(blocked, 2, 0, result)
    running = begun(blocked, 5)
    chosen = 0
    while (entry := blocked.choose(1, 0, 100)) is not None:
        chosen += 1
        blocked.calls.ended([(entry, None)], 100)
        blocked.ended([(entry, None)], 100)
    assert chosen == (2 if counts else 0)
    assert len(running) == 5


def test_a_token_lasts_five_minutes() -> None:
    for passed_s, lasts in ((TOKEN_LASTS_S - 1, True), (TOKEN_LASTS_S + 1, False)):
        blocked = BlockedCalls(AFTER_S)
        answered(blocked, 3, 0)
        begun(blocked, 1)
        assert (blocked.choose(1, 0, passed_s) is not None) is lasts


@stories("""
    its record goes to the dead letter topic and its slot to the next one
    poll 0 1 2 > start 0 1 | done 0 > start 2 | after 59 > commit 1 | after 2 > cancel 1 |
    cancelled 1 > dead letter 1 | published 1 | open? > 1
    nothing was answered
    poll 0 1 2 > start 0 1 | retry 0 > dead letter 0; start 2 | after 99
    an answer in spite of the cancellation counts
    poll 0 1 2 > start 0 1 | done 0 > start 2 | after 61 > cancel 1; commit 1 | done 1 | open? > 1
    one call at a time
    poll 0 1 2 3 4 > start 0 1 | done 0 > start 2 | done 2 > start 3 | after 61 > cancel 1; commit 1 | after 9 |
    cancelled 1 > dead letter 1; start 4 | after 9 | after 61 > cancel 3; commit 1
    a call whose partition is lost is not rerouted
    poll 0 1 2 > start 0 1 | done 0 > start 2 | after 61 > cancel 1; commit 1 |
    lost > cancel 1 2 | cancelled 1 2 | open? > 0
""")
def test_a_blocked_call_is_cancelled_and_its_record_goes_on(story: str) -> None:
    play(story, mode="off", slots=2, cancel_after=60.0)


def test_with_a_retry_topic_the_record_goes_there() -> None:
    story = "poll 0 1 > start 0 | done 0 > start 1 | after 61 > cancel 1; commit 1 | cancelled 1 > retry 1"
    play(story, mode="off", slots=1, cancel_after=60.0, delays=(5,))


def test_without_the_setting_nothing_is_cancelled() -> None:
    play("poll 0 1 > start 0 | done 0 > start 1 | after 9999 > commit 1", mode="off", slots=1)
