"""Ordering in the engine: a record starts when the earlier ones of its lane are settled and their calls have ended."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from processor.dispatch.scheduler import Ordered, key_lane
from processor.lifecycle import Entry
from processor.partition import Partition
from tests.unit.processor.engine_bench import play, stories
from tests.unit.processor.parts import PLACE


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
    assert (len(scheduler), scheduler.startable, scheduler.behind_of(PLACE)) == (2, 0, 2)
    scheduler.leave([entries[0], entries[3], entries[5]])
    assert [entry.offset for entry in scheduler.take(1)] == [2]
    assert [entry.offset for entry in scheduler.take(1)] == [6]
    scheduler.leave([entries[1], entries[2], entries[4], entries[6]])
    assert not scheduler._lanes, "nothing is left of a key"  # noqa: SLF001
