"""Order of calls in the engine, calls that are cancelled as they hold nearly all slots, and limits of routes."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from processor.flow.blocked_calls import HELD_SHARE, TOKEN_LASTS_S, BlockedCalls
from processor.flow.route_limits import RouteLimits
from processor.flow.scheduler import Ordered, key_lane, partition_lane
from processor.protocol.partition import Partition
from processor.protocol.record import Entry, Step
from processor.protocol.results import Done, Failed
from tests.unit.processor.engine_bench import play, stories
from tests.unit.processor.parts import PLACE, entries


class Keyed(NamedTuple):
    key: bytes | None


@pytest.mark.guarantee("O1.1")
@stories("""
    one after the other
    poll 0 1 2 > start 0 | done 0 > start 1 | done 1 > start 2 | done 2 | after 1 > commit 3
    a partition doesn't wait for another one
    poll 0 1 > start 0 | assigned b > resume b | poll b0 b1 > start b0 | done b0 > start b1
    behind a failure, when its dead letter is acknowledged
    poll 0 1 > start 0 | failed 0 > dead letter 0 | after 1 | published 0 > start 1
    behind a malformed record, when its dead letter is acknowledged
    malformed 0 > dead letter 0 | poll 1 | published 0 > start 1
    a malformed record between others
    poll 0 > start 0 | malformed 1 > dead letter 1 | poll 2 | published 1 | done 0 > start 2
    an outcome of a record further on doesn't start the ones between
    poll 0 1 > start 0 | malformed 2 > dead letter 2 | published 2 | done 0 > start 1
""")
def test_a_record_waits_for_the_earlier_ones(story: str) -> None:
    play(story, mode="off", ordering="partition")


@pytest.mark.guarantee("O1.2")
@stories("""
    a cancelled call that hasn't ended holds up what is polled again
    poll 0 1 > start 0 | lost > cancel 0 | assigned > resume a | poll 0 1 | cancelled 0 > start 0 | done 0 > start 1
    so it does when it succeeds after all, which doesn't count
    poll 0 1 > start 0 | lost > cancel 0 | assigned > resume a | poll 0 1 | done 0 > start 0
    a dead letter on its way holds it up too
    poll 0 1 > start 0 | failed 0 > dead letter 0 | lost | assigned > resume a | poll 1 | published 0 > start 1
""")
def test_an_earlier_assignment_holds_the_order(story: str) -> None:
    play(story, mode="off", ordering="partition")


@pytest.mark.guarantee("O1.3")
@stories("""
    nothing starts while a partition is revoked, and what has ended is committed
    poll 0 1 > start 0 | revoking | done 0 | revoke > release 1 | open? > 0
    what still runs is cancelled
    poll 0 1 > start 0 | revoking | revoke > cancel 0; release 0 | cancelled 0 | open? > 0
    another partition continues
    poll 0 1 > start 0 | assigned b > resume b | revoking | poll b0 b1 > start b0 | done b0 > start b1 | done 0 |
    revoke > release 1
""")
def test_calls_end_before_their_partition_is_given_up(story: str) -> None:
    play(story, mode="off", ordering="partition")


@pytest.mark.guarantee("P7.1")
@stories("""
    a partition whose records wait pauses, and continues when half of them are left
    poll 0 1 2 3 4 5 6 > pause a; start 0 | done 0 > start 1 | done 1 > start 2 | done 2 > start 3 | done 3 > start 4 |
    after 1 > commit 4; resume a
""")
def test_records_that_wait_do_not_fill_the_prefetch(story: str) -> None:
    play(story, mode="off", ordering="partition", prefetch=10)


@pytest.mark.guarantee("O1.1")
def test_keys_have_lanes_of_their_own_and_a_null_key_has_none() -> None:
    partition, scheduler = Partition(PLACE, 0), Ordered(key_lane)
    keys = [b"a", b"b", b"a", None, None, b"", b""]
    entries = [Entry(partition, n, n, Keyed(key), 1, 0.0, False) for n, key in enumerate(keys)]
    scheduler.enter(entries)
    scheduler.add(entries)
    assert [entry.offset for entry in scheduler.take(10)] == [0, 1, 3, 4, 5]
    assert (len(scheduler), scheduler.behind, scheduler.behind_of(PLACE)) == (2, 2, 2)
    scheduler.leave([entries[0], entries[3], entries[5]])
    assert [entry.offset for entry in scheduler.take(1)] == [2]
    assert [entry.offset for entry in scheduler.take(1)] == [6]
    scheduler.leave([entries[1], entries[2], entries[4], entries[6]])
    assert not scheduler._lanes, "nothing is left of a key"  # noqa: SLF001


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


# The route of a record is the remainder of its offset by two.
TWO_OF_FOUR = {"mode": "off", "slots": 4, "route_limits": {0: 2}}


@pytest.mark.guarantee("P7.19")
@stories("""
    records behind overtake those of a full route
    poll 0 1 2 3 4 5 6 > start 0 1 2 3 | done 1 > start 5 | done 3 | waiting? > 2 | done 0 > start 4 |
    done 2 > start 6
    a full route leaves slots to others
    poll 0 2 4 6 > start 0 2 | waiting? > 2 | poll 7 9 11 > start 7 9 | done 7 > start 11
    calls that fail or are cancelled give their slots back
    poll 0 2 4 6 > start 0 2 | failed 0 > dead letter 0; start 4 | cancelled 2 > start 6
    records of a full route take no room from others
    poll 0 2 4 6 8 10 12 14 > start 0 2 | room? > 6 | poll 15 > start 15
    records of a partition that is lost give nothing back
    poll 0 2 4 > start 0 2 | lost > cancel 0 2 | waiting? > 0 | assigned > resume a | poll 6 8 | cancelled 0 > start 6
""")
def test_a_route_with_a_bulkhead(story: str) -> None:
    play(story, **TWO_OF_FOUR)


@pytest.mark.guarantee("P7.19")
@stories("""
    records of retry topics share it
    later 99 | assigned b > resume b | poll 0 2 > start 0 2 | poll b4 b5 > start b5 | poll 4 | done 0 > start b4 |
    done 2 > start 4
""")
def test_records_of_retry_topics_have_the_bulkhead_of_their_route(story: str) -> None:
    play(story, **TWO_OF_FOUR, delay=1, retries=True)


@pytest.mark.guarantee("P7.19")
@stories("""
    a record that is registered again while it waits gives no slot back
    poll 0 2 4 > register 0 2 4 | registered 0 2 4 > start 0 2 | after 41 > register 4; commit 5 |
    done 0 > tombstone 0 | registered 4 > start 4
""")
def test_a_record_that_waits_for_long_is_registered_again(story: str) -> None:
    play(story, slots=4, route_limits={0: 2})


@pytest.mark.guarantee("P7.19", "O1.1")
@stories("""
    a full route holds up its own partition, and no other one
    assigned b > resume b | poll 0 1 > start 0 | poll b0 b1 | done 0 > start b0 1 | done b0 > start b1
""")
def test_order_holds_across_routes(story: str) -> None:
    play(story, mode="off", slots=4, ordering="partition", route_limits={0: 1})


@pytest.mark.guarantee("P7.19")
@stories("""
    nothing of a partition that leaves starts, and its slots are for others
    assigned b > resume b | poll 0 2 > start 0 | revoking | poll b0 | done 0 > start b0 | revoke > release 2 |
    waiting? > 0
""")
def test_a_revocation_gives_slots_back(story: str) -> None:
    play(story, mode="off", slots=4, route_limits={0: 1})


@pytest.mark.guarantee("P7.1", "P7.19")
@stories("""
    a partition whose records wait pauses, and continues when half of them are left
    poll 0 2 4 6 8 10 12 > start 0 | poll 14 > pause a | done 0 > start 2 | done 2 > start 4 | done 4 > start 6 |
    done 6 > start 8 | done 8 > start 10 | after 1 > commit 10; resume a
""")
def test_records_of_a_full_route_do_not_fill_the_prefetch(story: str) -> None:
    play(story, mode="off", route_limits={0: 1}, prefetch=10)


@pytest.mark.guarantee("P7.19", "O1.1")
def test_a_record_of_a_full_route_keeps_its_place_in_the_order() -> None:
    first, other, second = entries(0, 1, 2)
    ordered = Ordered(partition_lane)
    route_limits = RouteLimits(lambda entry: entry.offset % 2, {0: 0})
    ordered.enter([first, other, second])
    ordered.add([first, other, second])
    assert route_limits.take(ordered, 3, False) == []
    assert [each.behind_of(first.partition.place) for each in (ordered, route_limits)] == [2, 1]
    assert (ordered.behind, route_limits.behind) == (2, 1)
    ordered.leave([first])
    assert route_limits.take(ordered, 3, False) == [other]
