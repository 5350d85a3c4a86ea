"""A processor that dies at any moment loses nothing, and a record that kills it kills it once (P1, P2)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.integration.processor.wait_topic import stories
from tests.support.committed_offsets import committed
from tests.support.processes import Services
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.settings.root import Settings

# A killed member blocks its group until its session is over: 45 s by default.
QUICK = {"kafka.librdkafka": {"session.timeout.ms": 2000, "heartbeat.interval.ms": 300}}
HANDLERS = "tests.integration.processor.deadly_handlers"

Make = Callable[..., Settings]


def _calls(path: Path) -> list[tuple[str, int]]:
    if not path.exists():
        return []
    lines = (line.split() for line in path.read_text().splitlines())
    return [(wait_id, int(offset)) for wait_id, offset in lines]


def _called(path: Path, times: int) -> bool:
    return len(_calls(path)) >= times


@pytest.mark.fault("F1")
def test_a_killed_processor_loses_nothing_that_it_committed(
    processor_settings: Make, topics: Topics, services: Services, tmp_path: Path
) -> None:
    calls = tmp_path / "calls"
    settings = processor_settings(
        {
            **QUICK,
            "processor.handler": f"{HANDLERS}:slow",
            "processor.max_in_flight": 10,
            "processor.commit_interval_s": 0.3,
        }
    )
    topic, group = settings.processor.topics[0], settings.processor.group
    topics.produce(topic, [b"%d" % number for number in range(600)])
    seen_first: dict[tuple[str, int, int], bytes | None] = {}
    for kill_after in (60, 150):
        service = services.start("processor", settings, environment={"CALLS": str(calls)})
        wait_until(partial(_called, calls, kill_after), 60, "calls")
        service.kill()
        told = stories(topics.read(settings.wait.topic))
        for partition, position in enumerate(committed(topics.bootstrap, group, topic, 3)):
            missing = [offset for offset in range(max(position, 0)) if (topic, partition, offset) not in told]
            assert missing == [], "a committed offset never passes a record that isn't registered"
        for origin, story in told.items():
            assert seen_first.setdefault(origin, story.waits[0].key) == story.waits[0].key, "an ID never changes"

    lost = {origin for origin, story in told.items() if not story.resolved}
    assert lost, "records were in flight when it was killed"
    passed = committed(topics.bootstrap, group, topic, 3)
    orphans = {origin for origin in lost if origin[2] < passed[origin[1]]}
    assert services.start("processor", settings, "--once", environment={"CALLS": str(calls)}).wait() == 0
    told = stories(topics.read(settings.wait.topic))
    assert len(told) == 600
    unresolved = {origin for origin, story in told.items() if not story.resolved}
    assert unresolved == orphans, "exactly what was committed and unfinished waits for its expiry"


@pytest.mark.guarantee("P1.1")
@pytest.mark.fault("F7")
def test_a_record_that_kills_the_process_does_so_once(
    processor_settings: Make, topics: Topics, services: Services, tmp_path: Path
) -> None:
    calls = tmp_path / "calls"
    environment = {"CALLS": str(calls)}
    # The regular commit never comes: only the one that the warm-up waits for.
    settings = processor_settings(
        {**QUICK, "processor.handler": f"{HANDLERS}:dies_of_poison", "processor.commit_interval_s": 60}, 1
    )
    topic, group = settings.processor.topics[0], settings.processor.group
    topics.produce(topic, [b"poison"])
    assert services.start("processor", settings, environment=environment).wait() == 9
    assert committed(topics.bootstrap, group, topic, 1) == [1], "its registration was committed before it was started"

    topics.produce(topic, [b"fine"] * 5)
    assert services.start("processor", settings, "--once", environment=environment).wait() == 0
    told = stories(topics.read(settings.wait.topic))
    assert {origin[2]: story.resolved for origin, story in told.items()} == {
        0: False,
        **dict.fromkeys(range(1, 6), True),
    }
    assert sorted(offset for _, offset in _calls(calls)) == [0, 1, 2, 3, 4, 5], "nothing is called twice"


@pytest.mark.fault("F2")
def test_a_frozen_processor_continues_and_commits_nothing_lost(
    processor_settings: Make, topics: Topics, services: Services, tmp_path: Path
) -> None:
    environment = {"CALLS": str(tmp_path / "calls")}
    settings = processor_settings(
        {
            **QUICK,
            "processor.handler": f"{HANDLERS}:slow",
            "processor.max_in_flight": 10,
            "processor.drain_timeout_s": 20,
        }
    )
    topic, group = settings.processor.topics[0], settings.processor.group
    topics.produce(topic, [b"%d" % number for number in range(500)])
    frozen = services.start("processor", settings, environment=environment)
    wait_until(partial(_called, tmp_path / "calls", 50), 60, "calls")
    frozen.pause()
    assert services.start("processor", settings, "--once", environment=environment).wait() == 0
    worked_off = committed(topics.bootstrap, group, topic, 3)
    assert sum(worked_off) == 500
    frozen.resume()
    frozen.wait_ready()
    # It has its partitions again by now, or will have: it alone processes what comes next.
    topics.produce(topic, [b"more"] * 20)
    wait_until(lambda: sum(committed(topics.bootstrap, group, topic, 3)) == 520, 60, "the commit of the new records")
    assert all(now >= then for now, then in zip(committed(topics.bootstrap, group, topic, 3), worked_off, strict=True))
    assert frozen.terminate() == 0
    told = stories(topics.read(settings.wait.topic))
    assert len(told) == 520
    assert all("done" in story.outcomes for story in told.values()), "none is lost"
    # What lay in its send queue when it was frozen arrives after the other's tombstone: registered again, to expire.
    registered_late = [story.waits[-1] for story in told.values() if not story.resolved]
    assert {wait.text("WAIT_INSTANCE") for wait in registered_late} <= {
        wait.text("WAIT_INSTANCE") for wait in topics.read(settings.wait.topic)[:1]
    }, "by the frozen one"
    assert any(line.get("message", "").startswith("partitions lost") for line in frozen.log_lines())
