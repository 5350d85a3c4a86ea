"""However the work ends: the group is left, workers are stopped, a fault is raised, and what is left is said (P8)."""

from __future__ import annotations

import asyncio
import logging

import pytest

from processor.entry import EntryState
from tests.unit.processor.parts import batch, endless, entry, iterate_until
from tests.unit.processor.pipeline_bench import PipelineBench
from wait_registry.errors import PermanentError
from wait_registry.handler import Record

BROKEN = PermanentError("a tombstone was refused")


@pytest.mark.parametrize("when", ["before leaving the group", "after leaving it"])
async def test_a_fault_in_the_drain_is_raised_after_leaving_the_group(when: str) -> None:
    bench = PipelineBench(endless)
    bench.stop.set()
    if when == "before leaving the group":
        bench.committable.append(batch(entry(bench.owner, 1)))
    bench.dispatcher.add([bench.registered(0, EntryState.REGISTERING)])
    running = asyncio.ensure_future(bench.pipeline.run())
    await iterate_until(lambda: bench.dispatcher.running)
    if when == "after leaving it":
        await iterate_until(lambda: bench.pipeline.leaving is not None and bench.pipeline.leaving.done())
    bench.fault.report(BROKEN)
    with pytest.raises(PermanentError) as raised:
        await running
    assert raised.value is BROKEN
    assert all(worker.cancelled() for worker in bench.dispatcher.workers)
    with pytest.raises(RuntimeError, match="closed"):
        bench.group_consumer.take(1)


@pytest.mark.guarantee("P8.17")
async def test_what_the_drain_has_waited_for_in_vain_is_not_waited_for_again() -> None:
    bench = PipelineBench(drain_timeout_s=0.05, flush_timeout_s=3600)
    bench.committable.append(batch(entry(bench.owner, 1)))
    bench.stop.set()
    await bench.pipeline.run()
    assert not bench.poll_loop.registered()
    bench.poll_loop.revoked([bench.owner])


async def test_a_fault_in_the_last_turn_of_the_drain_is_raised() -> None:
    async def fails_when_stopped(record: Record) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            bench.fault.report(BROKEN)

    bench = PipelineBench(fails_when_stopped, drain_timeout_s=0.01)
    bench.stop.set()
    bench.dispatcher.add([bench.registered(0, EntryState.REGISTERING)])
    with pytest.raises(PermanentError):
        await bench.pipeline.run()


async def test_what_is_not_acknowledged_at_the_end_is_said(caplog: pytest.LogCaptureFixture) -> None:
    # The record stays in the producer's queue for as long as the test lasts.
    bench = PipelineBench(flush_timeout_s=0.05, producer={"linger.ms": 600_000, "message.timeout.ms": 0})
    bench.stop.set()
    bench.dispatcher.add([bench.registered(0, EntryState.REGISTERING)])
    with caplog.at_level(logging.INFO):
        await bench.pipeline.run()
    assert not bench.outstanding.records
    assert "no record is left" not in caplog.text
    assert "1 tombstones or dead letters" in caplog.text
