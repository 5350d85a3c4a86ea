"""Handlers that hang, leak or block the event loop: their records stay registered, others do the rest (P1)."""

from __future__ import annotations

import resource
import threading
from collections import Counter

import psutil
import pytest

from tests.faults.processor.observation import Observation
from tests.integration.processor.calls import HANDLERS, Calls, Place
from tests.integration.processor.deadly_handlers import LEAK_BYTES
from tests.integration.processor.scenario import ProcessorScenario, ScenarioFactory, accepts, numbers
from tests.support.processes import Service
from tests.support.waiting import wait_until
from wait_registry.handler import Record

N = 2


def with_handler(at: ProcessorScenario, name: str) -> ProcessorScenario:
    """Return the scenario of a process that has the handler's name."""
    return at.changed("processor", handler=f"{HANDLERS}:{name}", instance=name)


def instances_of_unresolved(seen: Observation, calls: Calls) -> set[str]:
    found = seen.judge(calls.counted())
    return {story.waits[-1].text("WAIT_INSTANCE") for story in found.values() if not story.resolved}


@pytest.mark.fault("F38")
def test_calls_that_never_return_take_their_slots_alone(faulty_scenario: ScenarioFactory, calls: Calls) -> None:
    at = faulty_scenario(accepts, 1, max_in_flight=N, max_attempts=1, handler_timeout_s=0.5, drain_timeout_s=1)
    with Observation(at.topics, at.settings) as seen:
        hanging = calls.start(with_handler(at, "hangs")).wait_ready()
        hung = seen.publish([b"hang"] * N)
        seen.publish(numbers(20))
        wait_until(lambda: "slots are blocked" in hanging.get("/health/ready")[1], what="not being ready")
        assert calls.counted() == Counter(hung), "nothing begins without a slot"
        assert hanging.terminate() == 0
        assert calls.start(with_handler(at, "takes_a_while"), "--once").wait() == 0
    assert instances_of_unresolved(seen, calls) <= {"hangs"}
    errors = {(letter.value, letter.text("DLQ_ERROR_CLASS")) for letter in at.letters()}
    assert errors == {(b"hang", "TimeoutError")}


@pytest.mark.fault("F39")
def test_a_process_that_leaks_until_it_is_killed_loses_nothing(faulty_scenario: ScenarioFactory, calls: Calls) -> None:
    at = faulty_scenario(accepts, 1, max_in_flight=N)
    with Observation(at.topics, at.settings) as seen:
        leaking = calls.start(with_handler(at, "leaks")).wait_ready()
        allow_no_more_than(10 * LEAK_BYTES, leaking)
        seen.publish(numbers(40))

        def out_of_memory() -> bool:
            errors = [letter.text("DLQ_ERROR_CLASS") for letter in at.letters()]
            return leaking.process.poll() is not None or "MemoryError" in errors

        wait_until(out_of_memory, what="the end of the memory")
        leaking.kill()
        assert calls.start(with_handler(at, "takes_a_while"), "--once").wait() == 0
    assert instances_of_unresolved(seen, calls) <= {"leaks"}


def allow_no_more_than(further_bytes: int, service: Service) -> None:
    limit = psutil.Process(service.pid).memory_info().vms + further_bytes
    resource.prlimit(service.pid, resource.RLIMIT_AS, (limit, limit))


@pytest.mark.fault("F40")
def test_a_blocking_handler_loses_partitions_and_no_record(faulty_scenario: ScenarioFactory) -> None:
    calls: Counter[Place] = Counter()
    blocking, released = threading.Event(), threading.Event()

    async def blocks(record: Record) -> None:
        calls[record.partition, record.offset] += 1
        if record.value == b"block":
            blocking.set()
            released.wait(120)

    short = {"kafka.librdkafka": {"max.poll.interval.ms": 3000}, "processor.flush_timeout_s": 1.5}
    at = faulty_scenario(blocks, 3, short, instance="blocked")
    with Observation(at.topics, at.settings) as seen:
        # Of the warm-up: a commit covers it before its call, so it doesn't block its next owner too.
        seen.publish([b"block"])
        blocked = at.start().wait_joined()
        try:
            assert blocking.wait(60)
            other = at.changed("processor", instance="other").start()
            later = {place for _ in range(5) for place in seen.publish_each(b"later")}
            wait_until(lambda: later <= set(calls), what="the partitions of the one that is blocked")
        finally:
            released.set()
        wait_until(lambda: blocked.stats.rebalances["lost"], what="hearing of it")
        more = set(seen.publish_each(b"more"))
        wait_until(lambda: more <= set(calls), what="the last records")
        for each in (blocked, other):
            each.stop()
    unresolved = [story for story in seen.judge(calls).values() if not story.resolved]
    # Its records of that time, which it registered after the other's tombstone: they expire.
    assert {story.waits[-1].text("WAIT_INSTANCE") for story in unresolved} <= {"blocked"}
    assert all("done" in story.outcomes for story in unresolved)
