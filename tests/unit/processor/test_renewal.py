"""A second registration on its way when the partition moves is waited for, or its record stays ours: its tombstone
follows, so no registration expires although the next owner has done the work."""

from __future__ import annotations

import pytest

from processor.entry import Entry, EntryState
from tests.unit.processor.parts import LONG
from tests.unit.processor.pipeline_bench import PipelineBench


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
