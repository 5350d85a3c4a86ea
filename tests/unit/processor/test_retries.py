"""Retry topics and delays: where a failed record goes, when a delayed one is due, and what both leave for others."""

from __future__ import annotations

import asyncio

import pytest

from processor.flow.downstream_outage import Pace
from processor.protocol.partition import DueTimes
from processor.protocol.results import DeadLetter, Failed, Retry, RetryDelays
from tests.unit.processor.engine_bench import play, stories
from tests.unit.processor.loop_bench import LoopBench
from wait_registry.errors import TransientError
from wait_registry.handler import Record

ERROR = ValueError("failed")


@pytest.mark.parametrize(
    ("came_from_s", "retry_after_s", "delay_s"),
    [
        (0, 0, 10),
        (0, 10, 10),
        (0, 11, 60),
        (0, 3600, 600),
        (10, 0, 60),
        (30, 0, 60),
        (60, 0, 600),
        (600, 0, None),
        (3600, 0, None),
    ],
)
def test_a_failure_goes_to_a_step_long_enough(came_from_s: int, retry_after_s: float, delay_s: int | None) -> None:
    failed = Failed(ERROR, ours=True, retriable=True, retry_after_s=retry_after_s)
    after = RetryDelays((10, 60, 600)).after(failed, came_from_s)
    assert after == (DeadLetter("failed", ERROR, ours=True) if delay_s is None else Retry(delay_s, ERROR, ours=True))


def test_what_can_not_be_retried_is_dead_lettered_at_once() -> None:
    assert RetryDelays((10,)).after(Failed(ERROR), 0) == DeadLetter("failed", ERROR)


@pytest.mark.guarantee("P1.23", "P1.25")
@stories("""
    without a registration the retry record settles it
    poll 0 > start 0 | retry 0 > retry 0 | after 1 | open? > 1 | published 0 | open? > 0 | after 1 > commit 1
    a registered one gets its tombstone afterwards
    SLOW | registered 0 | retry 0 > retry 0 | published 0 > tombstone 0
    the tombstone waits for the registration too
    SLOW | retry 0 > retry 0 | published 0 | registered 0 > tombstone 0
    one too large for its topic is dead-lettered instead
    poll 0 > start 0 | retry 0 > retry 0 | too_large 0 > dead letter 0 | published 0 | after 1 > commit 1
    it stays with this process when its partition moves
    poll 0 > start 0 | retry 0 > retry 0 | revoke > release 0 | published 0 | open? > 0
""")
def test_a_failure_is_settled_by_its_retry_record(story: str) -> None:
    play(story, mode="deferred", delays=(10,))


@pytest.mark.guarantee("P1.23")
async def test_nothing_is_committed_until_the_broker_has_the_retry_record() -> None:
    async def fails(record: Record) -> None:
        raise TransientError("later")

    # The client waits before it sends anything.
    unsent = {"linger.ms": 600_000, "message.timeout.ms": 0}
    retry = {"delays": ("10s",)}
    bench = LoopBench(fails, unsent, registration="off", max_attempts=1, retry=retry, commit_interval_s=0.05)
    bench.poll(0)
    await asyncio.wait_for(bench.run_until(lambda: bench.outbox.unacknowledged), 30)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(bench.run_until(lambda: bench.commits), 0.5)
    bench.producer.flush(30)
    await asyncio.wait_for(bench.run_until(lambda: bench.commits), 30)
    assert bench.commits == [1]


@pytest.mark.guarantee("D1.1", "P1.25")
@stories("""
    the last step is followed by the dead letter topic
    later 20 | poll 0 > start 0 | retry 0 > dead letter 0
    a record that isn't due is polled again when it is
    poll 0 > pause a; rewind 0 | open? > 0 | later 9 | tick | after 1 > resume a |
    poll 0 1 > pause a; rewind 1; start 0 | after 1 > resume a | poll 1 > start 1
    it waits for half a second at least
    later 9.9 | poll 0 > pause a; rewind 0 | after 0.2 | after 0.3 > resume a
    a rebalance resumes no partition that waits
    poll 0 > pause a; rewind 0 | assigned b > resume b | after 1 | after 9 > resume a
    neither does room
    later 10 | poll 0 1 > pause a; rewind 1; start 0 | crowded | paused? > False
    a partition that is assigned again waits anew
    poll 0 > pause a; rewind 0 | revoke > release | assigned > resume a | after 11 | poll 0 > start 0
    commits pass what was handled
    later 10 | poll 0 1 > pause a; rewind 1; start 0 | done 0 | tick > commit 1
    another group's record is passed over
    later 10 | foreign 0 | open? > 0 | tick > commit 1
""")
def test_records_of_a_retry_topic_wait_for_their_time(story: str) -> None:
    play(story, mode="off", delays=(10,), delay=10, retries=True)


@pytest.mark.guarantee("D1.2")
@stories("""
    also from when the log was seen to have it, while the partition is paused
    poll 99 > pause a; rewind 99 | after 9 | ends 102 b9 | after 1 > resume a |
    poll 99 100 101 > pause a; rewind 100; start 99 | after 8 > commit 99 | after 1 > resume a |
    poll 100 101 > start 100 101
    also from the assignment on
    later 10 | poll 97 > start 97
""")
def test_no_record_waits_for_a_time_in_the_future(story: str) -> None:
    play(story, mode="off", recorded_mode="off", delay=10, end=98)


@pytest.mark.guarantee("P7.16")
@stories("""
    one of the slots is theirs, and others start first
    later 99 | assigned b > resume b | poll 0 1 2 > start 0 1 2 | poll b0 b1 b2 b3 b4 > start b0 | done 0 > start b1 |
    done 1 > start b2 | done 2 > start b3 | poll 3 4 | done b0 > start 3 | done b1 > start b4 | done b2 > start 4
""")
def test_retries_leave_the_slots_to_others(story: str) -> None:
    play(story, mode="off", slots=4, delay=10, retries=True)


@pytest.mark.guarantee("P7.16")
@stories("""
    half of the prefetch while others are open
    later 99 | assigned b > resume b | poll b0 > start b0 | poll 0 1 2 > start 0 1 2 | poll 3 > pause a |
    done b0 > start 3 | tick > commit b1; resume a
    and all of it else
    later 99 | poll 0 1 2 3 4 5 6 7 > start 0 1 2 3 | assigned b > resume b
""")
def test_retries_leave_room_for_others(story: str) -> None:
    play(story, mode="off", slots=4, delay=10, retries=True)


@pytest.mark.guarantee("D1.2")
def test_a_delay_counts_from_the_timestamp_and_never_from_later_than_the_log_was_seen() -> None:
    times = DueTimes(10, retries=False)
    assert (times.due([0, 1], [1_000, 2_000], 11_500), times.next_ms) == (1, 12_000)
    ahead = DueTimes(10, retries=False)
    assert [ahead.due([7], [99_000], now_ms) for now_ms in (1_000, 5_000, 10_999)] == [0, 0, 0]
    assert ahead.due([7], [99_000], 11_000) == 1
    assert DueTimes(10, retries=False).due([0], [-1], 0) == 0


@pytest.mark.guarantee("D1.2")
@pytest.mark.parametrize(("delay_s", "ahead_ms"), [(15, 10**12), (300, 10**12), (300, 299_000), (9_000, 3_600_000)])
def test_records_wait_for_the_delay_after_the_log_was_seen_that_long(delay_s: int, ahead_ms: int) -> None:
    times, delay_ms, handled = DueTimes(delay_s, retries=True), 1_000 * delay_s, 0
    # A record comes every 5 s, when the log is seen.
    for now_ms in range(0, 5 * delay_ms, 5_000):
        times.seen(end := now_ms // 5_000 + 1, now_ms)
        offsets = range(handled, min(end, handled + 100))
        due = times.due(offsets, [5_000 * offset + ahead_ms for offset in offsets], now_ms)
        for offset in offsets[:due]:
            assert delay_ms <= now_ms - 5_000 * offset <= 1.002 * delay_ms + 5_000
        handled += due
        assert times.seen_end == (handled or -1)
    assert handled > 0.7 * end


def test_calls_slow_down_while_most_fail_and_recover_by_successes() -> None:
    pace, now_s = Pace(), 0.0
    pace.ended(100, 0, now_s)
    pace.ended(100, 100, now_s)
    assert pace.pause_s == 0
    for _ in range(40):
        now_s += 0.1
        pace.ended(1, 1, now_s)
    assert pace.pause_s == 1
    pace.started(now_s)
    assert (pace.allowed(now_s + 0.9), pace.allowed(now_s + 1)) == (0, 1)
    for _ in range(7):
        now_s += 1
        pace.ended(1, 0, now_s)
    assert pace.pause_s == 0


def test_a_few_failures_slow_nothing_down() -> None:
    pace = Pace()
    pace.ended(9, 9, 0.0)
    assert pace.pause_s == 0
    pace.ended(100, 0, 5.0)
    pace.ended(60, 60, 61.5)
    assert pace.pause_s == 0
    pace.ended(45, 45, 62.5)
    assert pace.pause_s > 0


@pytest.mark.guarantee("P7.16")
@stories("""
    one call after the other
    poll 0 1 2 3 4 5 6 7 8 9 > start 0 1 2 3 4 5 6 7 8 9 | poll 10 11 | failing 0 1 2 3 4 5 6 7 8 9 > DEAD; start 10 |
    failing 10 > dead letter 10 | after 0.1 > start 11
""")
def test_an_outage_of_the_downstream_slows_the_intake(story: str) -> None:
    play(story.replace("failing", "retry").replace("DEAD", "dead letter 0 1 2 3 4 5 6 7 8 9"), mode="deferred")
