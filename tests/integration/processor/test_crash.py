"""Processes that are killed, frozen, told to stop while blocked, or killed by their own handler (P1, P2)."""

from __future__ import annotations

import time

import pytest

from tests.integration.processor.calls import HANDLERS, Calls
from tests.integration.processor.deadly_handlers import TOGETHER
from tests.integration.processor.scenario import ScenarioFactory, numbers
from tests.support.waiting import wait_until

# A killed member blocks its group until its session is over: 45 s by default.
QUICK = {"kafka.librdkafka": {"session.timeout.ms": 2000, "heartbeat.interval.ms": 300}}
DRAIN_S = 4.0
# What the process may take beyond its limit on a busy machine; the blocked calls together take 45 s.
SLACK_S = 15.0


@pytest.mark.fault("F1")
def test_a_killed_processor_loses_nothing_that_it_committed(processor_scenario: ScenarioFactory, calls: Calls) -> None:
    at = processor_scenario(f"{HANDLERS}:slow", 3, QUICK, max_in_flight=10, commit_interval_s=0.3)
    at.produce(numbers(600))
    seen_first: dict[tuple[str, int, int], bytes | None] = {}
    for kill_after in (60, 150):
        service = calls.start(at)
        calls.wait_for(kill_after)
        service.kill()
        found = at.stories()
        for partition, position in enumerate(at.committed()):
            missing = [offset for offset in range(max(position, 0)) if (at.topic, partition, offset) not in found]
            assert missing == [], "a committed offset never passes a record that isn't registered"
        for origin, story in found.items():
            assert seen_first.setdefault(origin, story.waits[0].key) == story.waits[0].key, "an ID never changes"
    lost = {origin for origin, story in found.items() if not story.resolved}
    assert lost, "records were in flight when it was killed"
    passed = at.committed()
    orphans = {origin for origin in lost if origin[2] < passed[origin[1]]}
    assert calls.start(at, "--once").wait() == 0
    found = at.stories()
    assert len(found) == 600
    unresolved = {origin for origin, story in found.items() if not story.resolved}
    assert unresolved == orphans, "exactly what was committed and unfinished waits for its expiry"


@pytest.mark.guarantee("P1.1")
@pytest.mark.fault("F7")
def test_a_record_that_kills_the_process_does_so_once(processor_scenario: ScenarioFactory, calls: Calls) -> None:
    # The regular commit never comes: only the one that the warm-up waits for.
    at = processor_scenario(f"{HANDLERS}:dies_of_poison", 1, QUICK, commit_interval_s=60)
    at.produce([b"poison"])
    assert calls.start(at).wait() == 9
    assert at.committed() == [1], "its registration was committed before it was started"
    at.produce([b"fine"] * 5)
    assert calls.start(at, "--once").wait() == 0
    assert {offset: story.resolved for offset, story in at.by_offset().items()} == {
        0: False,
        **dict.fromkeys(range(1, 6), True),
    }
    assert sorted(calls.offsets()) == [0, 1, 2, 3, 4, 5], "nothing is called twice"


@pytest.mark.fault("F2")
def test_a_frozen_processor_continues_and_loses_nothing(processor_scenario: ScenarioFactory, calls: Calls) -> None:
    at = processor_scenario(f"{HANDLERS}:slow", 3, QUICK, max_in_flight=10, drain_timeout_s=20)
    at.produce(numbers(500))
    frozen = calls.start(at)
    calls.wait_for(50)
    frozen.pause()
    assert calls.start(at, "--once").wait() == 0
    worked_off = at.committed()
    assert sum(worked_off) == 500
    frozen.resume()
    frozen.wait_ready()
    # It has its partitions again by now, or will have: it alone processes what comes next.
    at.produce([b"more"] * 20)
    wait_until(lambda: sum(at.committed()) == 520, what="the commit of the new records")
    assert all(now >= then for now, then in zip(at.committed(), worked_off, strict=True))
    assert frozen.terminate() == 0
    found = at.stories()
    assert len(found) == 520
    assert all("done" in story.outcomes for story in found.values()), "none is lost"
    # What lay in its send queue when it was frozen arrives after the other's tombstone: registered again, to expire.
    registered_late = [story.waits[-1] for story in found.values() if not story.resolved]
    assert {wait.text("WAIT_INSTANCE") for wait in registered_late} <= {
        wait.text("WAIT_INSTANCE") for wait in at.topics.read(at.settings.wait.topic)[:1]
    }, "by the frozen one"
    assert any(line.get("message", "").startswith("partitions lost") for line in frozen.log_lines())


@pytest.mark.parametrize(("handler", "running"), [("blocks_for_an_hour", 1), ("blocks_for_seconds", TOGETHER)])
def test_sigterm_ends_a_process_whose_loop_is_blocked(
    handler: str, running: int, processor_scenario: ScenarioFactory, calls: Calls
) -> None:
    at = processor_scenario(f"{HANDLERS}:{handler}", 1, drain_timeout_s=DRAIN_S, max_in_flight=30)
    at.produce(numbers(30))
    service = calls.start(at)
    calls.wait_for(running)
    started_s = time.monotonic()
    assert service.terminate() == 1
    assert time.monotonic() - started_s < DRAIN_S + SLACK_S
    last = service.log_lines()[-1]
    assert last["level"] == "ERROR"
    assert f"{handler} (deadly_handlers.py" in last["message"]
    assert "drain_timeout_s = 4 s" in last["message"]
    found = at.by_offset()
    [position] = at.committed()
    assert set(found) >= set(range(position)), "no committed record is lost"
    assert [story for story in found.values() if not story.resolved], "unfinished records stay registered"
