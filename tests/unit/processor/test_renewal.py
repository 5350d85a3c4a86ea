"""A second registration on its way when the partition moves is waited for, or its record stays ours: its tombstone
follows, so no registration expires although the next owner has done the work."""

from __future__ import annotations

import pytest

from processor.entry import Entry, EntryState
from tests.unit.processor.parts import LONG
from tests.unit.processor.pipeline_bench import CLOCK, OVERDUE, PipelineBench


def renewing(bench: PipelineBench, offset: int = 3) -> Entry:
    """Return a registered record, not committed yet, whose renewal has been sent."""
    bench.owner.committable = offset + 1
    one = bench.registered(offset, EntryState.READY, LONG)
    bench.registration.renew(one)
    return one


async def test_a_rebalance_waits_for_renewals() -> None:
    bench = PipelineBench()
    one = renewing(bench)
    targets = bench.poll_loop.revoked([bench.owner])
    assert bench.registration.renewing == set()
    assert one.state is EntryState.DROPPED
    assert targets == {bench.owner: 3}
    assert bench.outstanding.records == 0


async def test_renewals_that_wait_for_room_are_sent_meanwhile() -> None:
    bench = PipelineBench(producer={"queue.buffering.max.messages": 1})
    bench.outbox.send(bench.outbox.receipt("a tombstone", "wait", lambda message: None), 0, b"id", None, [])
    one = renewing(bench)
    assert bench.outbox.full
    bench.poll_loop.revoked([bench.owner])
    assert one.state is EntryState.DROPPED
    assert not bench.outbox.unacknowledged


@pytest.mark.parametrize("how", ["revoked", "lost"])
async def test_a_record_whose_renewal_is_not_acknowledged_in_time_stays_ours(how: str) -> None:
    bench = PipelineBench(flush_timeout_s=0.01, producer={"test.mock.broker.rtt": 200})
    one = renewing(bench)
    targets = getattr(bench.poll_loop, how)([bench.owner])
    assert one.state is EntryState.RENEWING
    assert bench.outstanding.records == 1
    if how == "revoked":
        assert targets == {bench.owner: 4}, "its first registration stands: the commit may pass it"
    bench.answer_until(lambda: not bench.registration.renewing)
    assert bench.dispatcher.offsets_of(bench.owner) == [3]


async def test_a_record_held_by_the_warm_up_is_renewed_and_held_again() -> None:
    bench = PipelineBench()
    warm_up = bench.owner.warm_up
    held, fresh = bench.registered(0, EntryState.HELD, OVERDUE), bench.registered(1, EntryState.HELD)
    for one in (held, fresh):
        warm_up.hold(one.offset, one)
    bench.poll_loop.run_housekeeping(CLOCK.monotonic())
    assert bench.registration.renewing == {held}
    assert warm_up.held() == [(1, fresh)]
    bench.answer_until(lambda: not bench.registration.renewing)
    assert held.lifetime != OVERDUE
    assert {one for _, one in warm_up.held()} == {held, fresh}
    assert bench.dispatcher.waiting == 0
    bench.commits.confirm(bench.owner, 2)
    assert sorted(bench.dispatcher.offsets_of(bench.owner)) == [0, 1]


async def test_a_record_renewed_while_its_commit_is_confirmed_starts() -> None:
    bench = PipelineBench()
    held = bench.registered(0, EntryState.HELD, OVERDUE)
    bench.owner.warm_up.hold(0, held)
    bench.poll_loop.run_housekeeping(CLOCK.monotonic())
    bench.commits.confirm(bench.owner, 1)
    assert bench.dispatcher.waiting == 0, "not before its second registration is acknowledged"
    bench.answer_until(lambda: not bench.registration.renewing)
    assert bench.dispatcher.offsets_of(bench.owner) == [0]
