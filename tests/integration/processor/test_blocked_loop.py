"""A handler that blocks the event loop doesn't keep the process alive after SIGTERM."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.processor.wait_topic import stories
from tests.support.committed_offsets import committed
from tests.support.processes import Services
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.settings.root import Settings

DRAIN_S = 4.0
# What the process may take beyond its limit on a busy machine; each blocked call takes longer than this, all together
# more than a minute.
SLACK_S = 15.0
RECORDS = 30


@pytest.mark.parametrize("handler", ["blocks_for_an_hour", "blocks_for_seconds"])
def test_sigterm_ends_a_process_whose_loop_is_blocked(
    handler: str, processor_settings: Callable[..., Settings], topics: Topics, services: Services, tmp_path: Path
) -> None:
    settings = processor_settings(
        {
            "processor.handler": f"tests.integration.processor.deadly_handlers:{handler}",
            "processor.drain_timeout_s": DRAIN_S,
            "processor.max_in_flight": RECORDS,
        },
        1,
    )
    topic, group = settings.processor.topics[0], settings.processor.group
    topics.produce(topic, [b"%d" % number for number in range(RECORDS)])
    calls = tmp_path / "calls"
    service = services.start("processor", settings, environment={"CALLS": str(calls)})
    wait_until(calls.exists, 60, "the first call")
    started_s = time.monotonic()
    assert service.terminate() == 1
    assert time.monotonic() - started_s < DRAIN_S + SLACK_S
    last = service.log_lines()[-1]
    assert last["level"] == "ERROR"
    assert f"{handler} (deadly_handlers.py" in last["message"]
    assert "drain_timeout_s = 4 s" in last["message"]
    told = stories(topics.read(settings.wait.topic))
    [position] = committed(topics.bootstrap, group, topic, 1)
    assert {origin[2] for origin in told} >= set(range(position)), "no committed record is lost"
    assert [story for story in told.values() if not story.resolved], "unfinished records stay registered"
