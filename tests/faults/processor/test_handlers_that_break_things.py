"""Handlers that hang, leak or block the event loop: their records stay registered, others do the rest (P1)."""

from __future__ import annotations

import resource
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.faults.processor.handlers_in_processes import LEAK_BYTES, Calls
from tests.faults.processor.observation import Observation, Place
from tests.integration.processor.running import Processors
from tests.support.kafka_io import ReadRecord
from tests.support.processes import Service, Services
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.handler import Record
from wait_registry.settings.root import Settings

Make = Callable[..., Settings]

HANDLERS = "tests.faults.processor.handlers_in_processes"
N = 2


def of_a_handler(settings: Settings, name: str) -> Settings:
    """Return the settings of a process that has the handler's name."""
    own = settings.processor.model_copy(update={"handler": f"{HANDLERS}:{name}", "instance": name})
    return settings.model_copy(update={"processor": own})


def instances_of_unresolved(seen: Observation, calls: Calls) -> set[str]:
    told = seen.judge(calls.counted())
    return {story.waits[-1].text("WAIT_INSTANCE") for story in told.values() if not story.resolved}


@pytest.mark.fault("F38")
def test_calls_that_never_return_take_their_slots_and_nothing_else(
    faulty_settings: Make, faulty_topics: Topics, services: Services, tmp_path: Path
) -> None:
    settings = faulty_settings(
        {
            "processor.max_in_flight": N,
            "processor.max_attempts": 1,
            "processor.handler_timeout_s": 0.5,
            "processor.drain_timeout_s": 1,
        },
        1,
    )
    calls = Calls(tmp_path / "calls")
    with Observation(faulty_topics, settings) as seen:
        hanging = services.start("processor", of_a_handler(settings, "hangs"), environment=calls.environment)
        hanging.wait_ready()
        hung = seen.publish([b"hang"] * N)
        seen.publish(b"%d" % number for number in range(20))
        wait_until(lambda: "slots are blocked" in hanging.get("/health/ready")[1], what="not being ready")
        assert calls.counted() == Counter(hung), "nothing begins without a slot"
        assert hanging.terminate() == 0
        successor = of_a_handler(settings, "takes_a_while")
        assert services.start("processor", successor, "--once", environment=calls.environment).wait() == 0
    assert instances_of_unresolved(seen, calls) <= {"hangs"}
    letters = faulty_topics.read(settings.dead_letter.topic)
    assert {(letter.value, letter.text("DLQ_ERROR_CLASS")) for letter in letters} == {(b"hang", "TimeoutError")}


@pytest.mark.fault("F39")
def test_a_process_that_leaks_until_there_is_no_memory_loses_nothing(
    faulty_settings: Make, faulty_topics: Topics, services: Services, tmp_path: Path
) -> None:
    settings = faulty_settings({"processor.max_in_flight": N}, 1)
    calls = Calls(tmp_path / "calls")
    with Observation(faulty_topics, settings) as seen:
        leaking = services.start("processor", of_a_handler(settings, "leaks"), environment=calls.environment)
        leaking.wait_ready()
        allow_no_more_than(10 * LEAK_BYTES, leaking)
        seen.publish(b"%d" % number for number in range(40))

        def out_of_memory() -> bool:
            return leaking.process.poll() is not None or len(letters_of_want(faulty_topics, settings)) > 0

        wait_until(out_of_memory, what="the end of the memory")
        leaking.kill()
        successor = of_a_handler(settings, "takes_a_while")
        assert services.start("processor", successor, "--once", environment=calls.environment).wait() == 0
    assert instances_of_unresolved(seen, calls) <= {"leaks"}


def allow_no_more_than(further_bytes: int, service: Service) -> None:
    limit = psutil.Process(service.pid).memory_info().vms + further_bytes
    resource.prlimit(service.pid, resource.RLIMIT_AS, (limit, limit))


def letters_of_want(topics: Topics, settings: Settings) -> list[ReadRecord]:
    letters = topics.read(settings.dead_letter.topic)
    return [letter for letter in letters if letter.text("DLQ_ERROR_CLASS") == "MemoryError"]


@pytest.mark.fault("F40")
def test_a_blocking_handler_loses_partitions_and_no_record(
    faulty_settings: Make, faulty_topics: Topics, processors: Processors
) -> None:
    calls: Counter[Place] = Counter()
    blocking, released = threading.Event(), threading.Event()

    async def blocks(record: Record) -> None:
        calls[record.partition, record.offset] += 1
        if record.value == b"block":
            blocking.set()
            released.wait(120)

    settings = faulty_settings(
        {
            "processor.handler": processors.handler(blocks),
            "processor.instance": "blocked",
            "kafka.librdkafka": {"max.poll.interval.ms": 3000},
        }
    )
    with Observation(faulty_topics, settings) as seen:
        blocked = processors.start(settings).wait_joined()
        try:
            seen.publish([b"block"])
            assert blocking.wait(60)
            own = settings.processor.model_copy(update={"instance": "other"})
            other = processors.start(settings.model_copy(update={"processor": own}))
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
