"""The protocol of the processor as stories: what happens, and what the engine wants done then."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.flow.concurrency import FixedLimit
from processor.flow.prefetch import Prefetch
from processor.flow.scheduler import Unordered
from processor.protocol.effects import Commit, Pause, Register, Rewind
from processor.protocol.events import Assigned, CallsEnded, Polled, Tick
from processor.protocol.partition import Recorded
from processor.protocol.record import Entry, LifecycleError
from processor.protocol.registering import Rules
from processor.protocol.results import Done
from tests.unit.processor.engine_bench import BEGAN_MS, A, EngineBench, play, stories
from tests.unit.processor.parts import entries
from wait_registry.records.wait_record import RegistrationMode


@stories("""
    calls wait for their registrations, in the order of polling
    poll 0 1 > register 0 1 | tick | registered 1 | registered 0 > start 0 1
    a commit passes what is registered, without a gap
    poll 0 1 2 > register 0 1 2 | registered 0 2 > start 0 | after 1 > commit 1 | confirmed 1 | after 1 |
    registered 1 > start 1 2 | tick | after 1 > commit 3
    an outcome is a tombstone, and a failure a dead letter before it
    poll 0 1 2 > register 0 1 2 | registered 0 1 2 > start 0 1 2 | done 0 > tombstone 0 | discarded 1 > tombstone 1 |
    failed 2 > dead letter 2 | open? > 1 | published 2 > tombstone 2 | open? > 0
    a record that is too large is dead-lettered and holds the commit
    poll 0 1 > register 0 1 | registered 1 | refused 0 > dead letter 0 | after 1 | open? > 2 | published 0 > start 1 |
    open? > 1 | after 1 > commit 2
    a malformed record is dead-lettered and holds the commit
    malformed 0 > dead letter 0 | after 1 | published 0 | after 1 > commit 1
    records are registered in the order of their polls
    poll 0 1 > register 0 1 | poll 2 > register 2
""")
def test_eager_registers_before_the_call(story: str) -> None:
    play(story)


@pytest.mark.guarantee("P2.1")
@stories("""
    a commit passes the transaction markers behind the last record
    poll 0 > start 0 | done 0 | read_to 3 | after 1 > commit 3 | confirmed 3 | after 1 | poll 3 > start 3
    a partition without records has them too
    read_to 3 | after 1 > commit 3
    no commit passes a record before them that isn't settled
    poll 0 1 > start 0 1 | done 0 | read_to 5 | after 1 > commit 1 | confirmed 1 | after 1 | done 1 | after 1 > commit 5
    what is polled in a drain is dropped, so no commit passes it
    poll 0 > start 0 | drain > pause a | done 0 | read_to 3 | after 1 > commit 1
""")
def test_a_commit_passes_what_is_no_record(story: str) -> None:
    play(story, mode="off")


def test_without_an_offset_the_first_record_shows_where_to_begin() -> None:
    play("read_to 3 | after 1 | poll 3 > start 3 | after 1", mode="off", recorded_mode=None, start=None)


@pytest.mark.guarantee("P1.19", "P1.22", "P2.6")
@stories("""
    a fast record costs no registration
    poll 0 > start 0 | done 0 | after 1 > commit 1
    a slow record is registered when a commit shows whose partition it is
    poll 0 1 > start 0 1 | done 0 | after 0.6 > commit 1 | after 1 | confirmed 1 | after 0.1 > register 1 |
    registered 1 | done 1 > tombstone 1
    if nothing moved, the same offset is committed again
    SLOW | registered 0 | after 1 > commit 1
    a confirmation older than 5 s shows nothing
    SLOW | later 5 | poll 1 > start 1 | after 0.6 > commit 0 | confirmed 0 | after 0.1 > register 1
    a failed commit shows nothing
    poll 0 > start 0 | after 0.6 > commit 0 | unconfirmed | after 1 > commit 0
    an outcome waits for the registration in flight
    SLOW | done 0 | registered 0 > tombstone 0
    a failure during the registration, the report first
    SLOW | failed 0 > dead letter 0 | registered 0 | published 0 > tombstone 0
    a failure during the registration, the dead letter first
    SLOW | failed 0 > dead letter 0 | published 0 | registered 0 > tombstone 0
    a failure without a registration has no tombstone
    poll 0 > start 0 | failed 0 > dead letter 0 | after 1 | published 0 | after 1 > commit 1
    a record that is too large holds the commit until it is settled
    SLOW | refused 0 | after 1 | done 0 | after 1 > commit 1 | open? > 0
    a refusal after the outcome needs no tombstone
    SLOW | done 0 | refused 0 | open? > 0 | after 1 > commit 1
""")
def test_deferred_registers_what_is_slow(story: str) -> None:
    play(story, mode="deferred")


def test_a_slow_record_that_waits_for_a_slot_is_registered_too() -> None:
    story = "poll 0 1 > start 0 | after 0.6 > commit 0 | confirmed 0 | after 0.1 > register 0 1 | done 0 > start 1"
    play(f"{story} | registered 0 1 > tombstone 0", mode="deferred", slots=1)


@pytest.mark.guarantee("P3.16")
@pytest.mark.parametrize(
    "answer", ["registered 1 > register 1 | registered 1 > start 1", "refused 1 > start 1", "lost | registered 1"]
)
def test_a_call_waits_for_a_registration_that_takes_nearly_all_of_its_time(answer: str) -> None:
    story = "poll 0 1 > start 0 | after 0.6 > commit 0 | confirmed 0 | after 0.1 > register 0 1 | later 41 | done 0 | "
    play(story + answer, mode="deferred", slots=1)


@stories("""
    the commit waits for every call
    poll 0 1 > start 0 1 | done 1 | after 9 | done 0 | after 1 > commit 2
    a failure's commit waits for its dead letter
    poll 0 > start 0 | failed 0 > dead letter 0 | after 1 | published 0 | after 1 > commit 1
""")
def test_off_registers_nothing(story: str) -> None:
    play(story, mode="off")


@stories("""
    a record of the warm-up is registered at once
    poll 0 1 > register 0; start 1 | registered 0 > commit 1 | confirmed 1 > start 0
    it is dead-lettered if it is too large
    poll 0 1 > register 0; start 1 | refused 0 > dead letter 0 | published 0 | open? > 1
""")
def test_deferred_registers_in_the_warm_up(story: str) -> None:
    play(story, mode="deferred", end=1)


@stories("""
    a commit waits for its call all the same, which waits for the registration only
    poll 0 1 > register 0; start 1 | registered 0 > start 0 | after 1 | done 0 > tombstone 0 | after 1 > commit 1
    it is dead-lettered if it is too large
    poll 0 1 > register 0; start 1 | refused 0 > dead letter 0 | published 0 | open? > 1
    its call is cancelled when its partition is given up, and the next owner registers it again
    poll 0 1 > register 0; start 1 | registered 0 > start 0 | revoke > cancel 1 0; release 0 | done 0 | open? > 0
""")
def test_off_registers_in_the_warm_up_of_another_mode(story: str) -> None:
    play(story, mode="off", recorded_mode="eager", end=1)


@pytest.mark.guarantee("P1.1")
@stories("""
    calls start when a confirmed commit covers their records
    HELD | confirmed 3 > start 0 1 2
    a commit without a confirmation starts nothing
    HELD | unconfirmed | tick | after 1 > commit 3 | confirmed 3 > start 0 1 2
    a commit whose answer is lost is sent again after 30 s
    HELD | after 29 | after 1 > commit 3 | confirmed 3 > start 0 1 2
    a late answer confirms what its own commit covers
    poll 0 1 > register 0 1 | registered 0 > commit 1 | later 30 | registered 1 > commit 2 | confirmed 1 > start 0 |
    confirmed 2 > start 1
    the answer to a commit of an earlier assignment confirms nothing
    poll 0 > register 0 | registered 0 > commit 1 | lost | assigned > resume a | later 30 | poll 0 > register 0 |
    registered 0 > commit 1 | confirmed 1 | confirmed 1 > start 0
    a record that is registered again when its commit is confirmed needs no other
    poll 0 > register 0 | registered 0 > commit 1 | after 41 > register 0; commit 1 | confirmed 1 |
    registered 0 > start 0
    what the last commit of a released partition covers starts
    poll 0 1 2 > register 0 1 2 | registered 0 1 > commit 2 | revoke > release 2 | confirmed 2 > start 0 1
    what no commit covers when the partition has gone expires
    poll 0 1 2 > register 0 1 2 | registered 0 1 > commit 2 | lost | open? > 2 | unconfirmed | open? > 0
""")
def test_the_warm_up_holds_calls_until_a_commit_covers_them(story: str) -> None:
    play(story, end=3)


@pytest.mark.guarantee("P1.18")
@pytest.mark.parametrize(
    ("mode", "mode_before", "bound_before", "end", "warm_up", "recorded", "is_announced"),
    [
        ("eager", "eager", 20, 1000, (20, 1000), (20, "eager"), True),
        ("eager", "eager", 5, 1000, (10, 1000), (10, "eager"), False),
        ("eager", "eager", None, 1000, (math.inf, 1000), (None, "eager"), True),
        ("deferred", "off", 20, 1000, (20, 1000), (20, "deferred"), False),
        ("eager", None, None, 1000, (math.inf, 1000), (None, "eager"), False),
        ("eager", "deferred", 20, None, (20, math.inf), (20, "eager"), True),
        ("off", "off", 5, 1000, (0, 0), (10, "off"), True),
        ("off", None, None, 1000, (0, 0), (None, "off"), True),
        ("off", "deferred", 20, 1000, (20, 1000), (20, "deferred"), True),
        ("off", "deferred", 5, 1000, (10, 1000), (10, "deferred"), False),
    ],
)
def test_the_warm_up_follows_from_the_last_commit(
    mode: str,
    mode_before: str | None,
    bound_before: int | None,
    end: int | None,
    warm_up: object,
    recorded: object,
    is_announced: bool,
) -> None:
    rules = Rules(RegistrationMode(mode), 0.5, 10, 0.5, 60.0, 20.0)
    assigned = Assigned(A, 7, bound_before, mode_before, end)
    assert rules.warm_up(assigned) == warm_up
    assert rules.recorded(assigned) == recorded
    assert rules.is_announced(assigned) is is_announced


@pytest.mark.guarantee("P1.39")
@stories("""
    a larger bound or another mode
    confirmed 0 > resume a | poll 0 1 > register 0 1
    a commit that failed is sent again
    unconfirmed | after 0.6 > commit 0 | confirmed 0 > resume a
    what comes before the answer is polled again
    poll 0 1 > rewind 0 | open? > 0 | confirmed 0 > resume a | poll 0 1 > register 0 1
    a commit without an answer shows nothing to the next owner
    revoke > release | assigned > pause a | after 1 | confirmed 0 | after 1 > commit 0 | confirmed 0 > resume a
""")
@pytest.mark.parametrize(("before", "bound"), [("eager", 100), ("off", 200), (None, None)])
def test_a_commit_announces_mode_and_bound_before_polls(story: str, before: str | None, bound: int | None) -> None:
    play(story, recorded_mode=before, recorded_bound=bound)


@pytest.mark.guarantee("P1.39")
def test_a_partition_that_was_never_committed_announces_at_its_first_record() -> None:
    story = "poll 5 7 > pause a; rewind 5 | open? > 0 | tick > commit 5 | confirmed 5 > resume a"
    play(f"{story} | poll 5 7 > register 5 7", start=None, recorded_mode=None, recorded_bound=None)


def test_commits_record_the_former_owner_until_one_covers_the_warm_up() -> None:
    bench = EngineBench("off", end=2, recorded_mode="eager", recorded_bound=20, bound=10)
    for event in ("poll 0 1", "registered 0 1", "done 0", "later 1"):
        bench.play(event)
    assert bench.step(Tick()) == [Commit({A: 1}, {A: Recorded(20, "eager")})]
    for event in ("confirmed 1", "done 1", "later 1"):
        bench.play(event)
    assert bench.step(Tick()) == [Commit({A: 2}, {A: Recorded(10, "off")})]


@pytest.mark.guarantee("P3.16")
@stories("""
    one that waits is renewed although all slots are busy
    FOUR | after 41 > register 1 2 3; commit 4 | done 0 > tombstone 0 | registered 1 2 3 > start 1
    one whose turn it is is renewed before its call
    FOUR | later 41 | done 0 > tombstone 0; register 1 2 3 | registered 2 > start 2
    renewed ones are first in the queue
    FOUR | after 20 > commit 4 | poll 4 > register 4 | registered 4 | after 21 > register 1 2 3 | registered 1 2 3 |
    done 0 > tombstone 0; start 1 | done 1 > tombstone 1; start 2
    a start in time needs no renewal
    FOUR | later 39 | done 0 > tombstone 0; start 1
""")
def test_a_record_with_too_little_time_left_is_registered_again(story: str) -> None:
    play(story, slots=1)


def test_a_record_that_the_warm_up_holds_is_renewed_and_held_again() -> None:
    story = "poll 0 > register 0 | registered 0 > commit 1 | after 29 | after 12 > register 0; commit 1 | registered 0"
    play(f"{story} | confirmed 1 > start 0", end=1)


@pytest.mark.guarantee("P7.15")
@stories("""
    commits early at half of it, pauses at it, resumes at half
    poll 0 1 > start 0 1 | done 0 1 | tick > commit 2 | confirmed 2 | room? > 4 |
    poll 2 3 4 5 > pause a; start 2 3 4 5 | done 2 3 | tick > commit 4 | confirmed 4 > resume a
    a full partition takes no room from the others
    assigned b > resume b | poll 0 1 2 3 > pause a; start 0 1 2 3 | room? > 4 | poll b0 > start b0 | room? > 3
""")
def test_the_uncommitted_records_of_a_partition_are_bounded(story: str) -> None:
    play(story, mode="off", bound=4)


@pytest.mark.guarantee("P1.4", "P1.6")
@stories("""
    the commit stops at the first unstarted record
    FOUR | revoke > release 1 | open? > 1 | confirmed 1 | done 0 > tombstone 0 | open? > 0
    what a commit may have passed stays with this process
    FOUR | after 1 > commit 4 | revoke > release 4 | open? > 4 | confirmed 4 | done 0 > tombstone 0; start 1
    what is confirmed is not committed again
    FOUR | after 1 > commit 4 | confirmed 4 | revoke > release | open? > 4
    a record whose registration is on its way goes to the next owner
    poll 0 1 > register 0 1 | registered 0 > start 0 | revoke > release 1 | registered 1 | open? > 1
    a refusal after that is left to the next owner
    poll 0 > register 0 | revoke > release 0 | refused 0 | open? > 0
    a renewal on its way stays with this process
    FOUR | later 41 | done 0 > tombstone 0; register 1 2 3 | revoke > release 4 | open? > 3 | registered 1 2 3 > start 1
    a dead letter on its way stays with this process
    malformed 0 > dead letter 0 | revoke > release 0 | open? > 1 | published 0 | open? > 0
    a lost partition is divided without a commit
    FOUR | after 1 > commit 4 | lost | open? > 4 | done 0 > tombstone 0; start 1
    a lost partition without a commit keeps its registered call
    FOUR | lost | open? > 1
    a partition that is assigned again was lost
    FOUR | assigned > resume a | open? > 1 | poll 0 > register 0 | open? > 2
""")
def test_a_partition_that_moves_is_divided_and_gets_no_tombstone(story: str) -> None:
    play(story, slots=1)


@pytest.mark.guarantee("P1.4", "P1.6")
@pytest.mark.parametrize("mode", ["deferred", "off"])
@stories("""
    after the commit of what is settled
    poll 0 1 2 > start 0 1 | done 0 > start 2 | revoke > cancel 1 2; release 1 | cancelled 1 2 | open? > 0
    without one, and its late outcome is none
    poll 0 1 2 > start 0 1 | lost > cancel 0 1 | open? > 0 | done 0 | failed 1
""")
def test_unregistered_calls_are_cancelled_when_their_partition_moves(story: str, mode: str) -> None:
    play(story, mode=mode, slots=2)


@pytest.mark.guarantee("O1.5")
@pytest.mark.parametrize("ordering", ["unordered", "partition"])
@stories("""
    one that waits for a slot
    WAITS | lost > cancel 0 | cancelled 0 | registered 1 | open? > 0 | waiting? > 0
    one whose record is polled again here
    WAITS | lost > cancel 0 | assigned > resume a | registered 1 | poll 1 > register 1 | cancelled 0 | open? > 1
    one that is held behind a registration
    poll 0 1 > register 0 1 | registered 1 | after 41 > register 1 | lost | registered 0 1 | open? > 0
    one of a partition that moves
    WAITS | revoke > cancel 0; release 0 | cancelled 0 | registered 1 | open? > 0
""")
def test_a_renewal_on_its_way_is_the_next_owners_in_off(story: str, ordering: str) -> None:
    waits = "poll 0 1 > register 0 1 | registered 0 1 > start 0 | after 41 > register 1"
    play(story.replace("WAITS", waits), mode="off", ordering=ordering, end=2, slots=1)


@pytest.mark.guarantee("P1.38")
@stories("""
    one that waits for a slot
    FOUR | revoking | after 41 > commit 4 | revoke > release 4 | confirmed 4 | after 1 > register 1 2 3
    one that is held until a commit covers it
    poll 0 > register 0 | registered 0 > commit 1 | revoking | after 41 > commit 1 | confirmed 1 |
    revoke > release; register 0
""")
def test_nothing_of_a_partition_that_leaves_is_renewed(story: str) -> None:
    play(story, slots=1, end=0 if "1 2 3" in story else 1)


@stories("""
    no more calls than slots
    poll 0 1 2 > start 0 1 | done 1 > start 2
    a blocked slot takes no call
    blocked 1 | poll 0 1 2 > start 0 | done 0 > start 1 | blocked 0 > start 2
""")
def test_calls_are_limited_by_the_slots(story: str) -> None:
    play(story, mode="off", slots=2)


@stories("""
    while fewer records wait than can run, any room is
    poll 0 1 2 > start 0 1 | room? > 3 | worth_a_poll? > True | poll 3 4 5 | room? > 0 | worth_a_poll? > False
    else a quarter of the prefetch is
    poll 0 1 2 3 4 > start 0 1 | room? > 1 | worth_a_poll? > False | done 0 > start 2 | room? > 2 | worth_a_poll? > True
""")
def test_a_full_prefetch_is_refilled_in_portions(story: str) -> None:
    play(story, mode="off", slots=2)


@stories("""
    all partitions pause after some records without room
    poll 0 1 2 3 4 5 6 7 > start 0 1 2 3 | room? > 0 | crowded | poll 8 9 10 | tick | crowded |
    paused? > False | poll 11 > pause a | assigned b > pause b | done 0 > start 4 | tick | paused? > True
    they resume when a quarter of the room is there
    poll 0 1 2 3 4 5 6 7 > start 0 1 2 3 | crowded | poll 8 9 10 11 > pause a | done 0 > start 4 | done 1 > start 5 |
    done 2 > start 6 | done 3 > start 7 | done 4 > start 8 | tick | done 5 > start 9 | tick > resume a | room? > 2
    none pause for what had room when it was asked for
    poll 0 1 2 3 4 5 6 7 > start 0 1 2 3 | poll 8 9 10 11 | crowded | poll 12 13 14 | tick | poll 15 | paused? > False
""")
def test_without_room_all_partitions_pause(story: str) -> None:
    play(story, mode="off", slots=4)


@stories("""
    calls that wait for the warm-up
    room? > 14 | poll 0 1 > register 0 1 | registered 0 1 > commit 2 | room? > 34 | confirmed 2 > start 0 1 | room? > 12
""")
def test_more_is_polled_while_calls_wait_for_acknowledgments(story: str) -> None:
    play(story, mode="deferred", end=None)


@pytest.mark.parametrize(("records", "size"), [(8, 1000), (1000, 80)])
def test_a_poll_without_room_adds_nothing_at_the_caps(records: int, size: int) -> None:
    prefetch = Prefetch(FixedLimit(1), records, size)
    play(
        "poll 0 1 2 3 4 5 6 > start 0 | room? > 0 | crowded | poll 7 | crowded > pause a | crowded | paused? > True",
        mode="off",
        slots=1,
        prefetch=prefetch,
    )


@pytest.mark.guarantee("P7.5")
@given(
    st.integers(1, 20),
    st.integers(1, 100),
    st.integers(1, 1 << 20),
    st.lists(st.lists(st.integers(0, 1 << 22), min_size=1, max_size=30), min_size=1, max_size=8),
)
def test_polling_resumes_if_no_record_is_open(n: int, records: int, size: int, polls: list[list[int]]) -> None:
    bench = EngineBench("off", prefetch=Prefetch(FixedLimit(n), records, size), bound=10_000)
    at, running = 0, []
    for sizes in polls:
        offsets = range(at, at + len(sizes))
        at += len(sizes)
        running += [e for x in bench.step(Polled(A, offsets, offsets, sizes)) for e in getattr(x, "entries", ())]
    while running:
        ended: list[tuple[Entry, Done]] = [(entry, Done()) for entry in running]
        running = [e for x in bench.step(CallsEnded(ended)) for e in getattr(x, "entries", ())]
    assert len(bench.engine.records) == bench.engine.records.size == 0
    bench.step(Tick())
    assert not bench.flow.paused
    assert bench.flow.room() > 0


@stories("""
    registered records start, and nothing is polled
    FOUR | drain > pause a | room? > 0 | unsettled? > 3 | done 0 > tombstone 0; start 1 | unsettled? > 2 |
    assigned b > pause b
    wait records in flight are counted until their report
    poll 0 1 > register 0 1 | in_flight? > 2 | registered 0 > start 0 | in_flight? > 1
""")
def test_a_drain_handles_what_is_registered(story: str) -> None:
    play(story, slots=1)


@stories("""
    held records count
    poll 0 > register 0 | registered 0 > commit 1 | drain > pause a | unsettled? > 1 | confirmed 1 > start 0 |
    unsettled? > 0
""")
def test_a_drain_waits_for_the_warm_up(story: str) -> None:
    play(story, end=1)


@stories("""
    a running call without a registration counts
    poll 0 > start 0 | drain > pause a | unsettled? > 1 | done 0 | unsettled? > 0
""")
def test_a_drain_waits_for_unregistered_calls(story: str) -> None:
    play(story, mode="deferred")


def test_a_call_can_not_end_twice() -> None:
    bench = EngineBench("off")
    bench.play("poll 0")
    bench.play("done 0")
    with pytest.raises(LifecycleError):
        bench.play("done 0")


def test_the_oldest_registration_in_flight_shows_how_long_it_waits() -> None:
    bench = EngineBench()
    assert bench.engine.records.registering_s(100.0) == 0
    for text in ("later 70", "poll 0", "later 10", "poll 1"):
        bench.play(text)
    assert bench.engine.records.registering_s(100.0) == 30
    bench.play("registered 0")
    assert bench.engine.records.registering_s(100.0) == 20


def test_the_engine_wakes_for_the_first_slow_record() -> None:
    bench = EngineBench("deferred")
    bench.play("later 0.2")
    bench.play("tick")
    assert bench.engine.wake_s(0.2) == pytest.approx(0.05)
    bench.play("after 0.1")
    bench.play("poll 0")
    assert bench.engine.wake_s(0.4) == pytest.approx(0.15)


def test_slow_records_share_the_wake_ups_of_the_engine() -> None:
    bench = EngineBench("deferred")
    for text in ("poll 0", "later 0.6", "poll 1", "tick"):
        bench.play(text)
    # No commit of the partition is confirmed, so record 0 can't be registered yet.
    assert bench.engine.wake_s(0.6) == pytest.approx(0.02)


def test_records_start_in_their_order_and_those_that_waited_before_first() -> None:
    scheduler = Unordered()
    one, two, three, four, five = entries(1, 2, 3, 4, 5)
    scheduler.add([three, four, five])
    scheduler.add_first([one])
    scheduler.add_first([two])
    assert scheduler.remove(lambda entry: entry in (two, four)) == [two, four]
    assert list(scheduler) == [one, three, five]
    assert len(scheduler) == 3
    assert scheduler.take(2) == [one, three]
    assert scheduler.take(2) == [five]


@pytest.mark.guarantee("P1.36")
@stories("""
    a refused dead letter is written again after 30 s, and the commit waits for it
    poll 0 1 > start 0 1 | done 1 | failed 0 > dead letter 0 | letter_refused 0 > pause a | after 29 |
    after 1 > dead letter 0 | letter_refused 0 | after 30 > dead letter 0 | published 0 | after 1 > commit 2; resume a
    it is the next owner's when its partition has gone
    poll 0 1 > start 0 1 | done 1 | failed 0 > dead letter 0 | letter_refused 0 > pause a | revoke > release 0 |
    after 31 | open? > 0
    an acknowledgment after that changes nothing
    poll 0 1 > start 0 1 | done 1 | failed 0 > dead letter 0 | letter_refused 0 > pause a | after 30 > dead letter 0 |
    lost | published 0 | open? > 0
    it is the next owner's too when the refusal comes later
    poll 0 1 > start 0 1 | done 1 | failed 0 > dead letter 0 | lost | letter_refused 0 | after 31 | open? > 0
""")
def test_a_record_whose_dead_letter_is_refused_holds_the_offset(story: str) -> None:
    play(story, mode="off")


@pytest.mark.guarantee("P1.36")
@stories("""
    a registered record stays registered
    poll 0 > register 0 | registered 0 > start 0 | failed 0 > dead letter 0 | letter_refused 0 | open? > 0 |
    after 1 > commit 1
    one whose wait record is on its way holds the offset until it is there
    SLOW | failed 0 > dead letter 0 | letter_refused 0 > pause a | lost | registered 0 | open? > 0
    a revocation waits for no refused dead letter, be its wait record on its way or there
    SLOW | failed 0 > dead letter 0 | letter_refused 0 > pause a | unfinished? > 0 | registered 0 | unfinished? > 0
""")
def test_a_registered_record_is_kept_by_its_registration(story: str) -> None:
    play(story, mode="deferred" if "after 0.6" in story else "eager")


@pytest.mark.guarantee("P1.37")
def test_what_cannot_be_registered_holds_those_behind_it_until_its_call_ends() -> None:
    play(
        "poll 0 1 > register 0 1 | registered 1 | refused 0 > start 0 | done 0 > start 1 | after 1 > commit 2",
        hold_oversized=True,
    )


@pytest.mark.guarantee("P1.37")
def test_what_cannot_be_registered_does_not_hold_those_behind_it_where_commits_pass_settled_records() -> None:
    play(
        "poll 0 1 > register 0 1 | registered 1 | refused 0 > start 0 1 | done 0 1 > tombstone 1 | after 1 > commit 2",
        mode="off",
        end=100,
        hold_oversized=True,
    )


def test_a_malformed_record_that_is_not_due_is_left_for_the_next_poll() -> None:
    bench = EngineBench(delay=10)
    bench.now_s = 15.0
    times_ms = [BEGAN_MS, BEGAN_MS + 20_000]
    effects = bench.step(Polled(A, (0, 20), (0, 20), [10, 10], {20: ValueError("malformed")}, (), times_ms))
    assert [type(effect) for effect in effects] == [Pause, Rewind, Register]
