"""Of three processors one is killed, one is frozen until the others have its partitions: nothing is lost (P1, P2)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.faults.processor.handlers_in_processes import Calls
from tests.faults.processor.observation import Observation
from tests.support.processes import Service, Services
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.settings.root import Settings

PARTITIONS = 6
NAMES = ("killed", "frozen", "unharmed")


@pytest.mark.fault("F25")
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_three_processors_one_killed_one_frozen_lose_no_record(
    protocol: str, faulty_settings: Callable[..., Settings], faulty_topics: Topics, services: Services, tmp_path: Path
) -> None:
    settings = faulty_settings(
        {
            "processor.handler": "tests.faults.processor.handlers_in_processes:takes_a_while",
            "processor.max_in_flight": 5,
            "processor.group_protocol": protocol,
        },
        PARTITIONS,
    )
    calls = Calls(tmp_path / "calls")
    with Observation(faulty_topics, settings) as seen:
        killed, frozen, unharmed = (
            services.start("processor", named(settings, name), environment=calls.environment) for name in NAMES
        )
        for each in (killed, frozen, unharmed):
            each.wait_ready()
        for each in (killed, frozen, unharmed):
            seen.publish_until(lambda pid=each.pid: len(calls.by(pid)) > 20, "calls by each")  # type: ignore[misc]

        killed.kill()
        assert killed.process.returncode == -9
        frozen.pause()
        wait_until(lambda: state(frozen) == psutil.STATUS_STOPPED, what="the frozen processor")
        late = set(seen.publish_each(b"late"))
        wait_until(lambda: late <= calls.by(unharmed.pid), what="the partitions of the others")
        assert state(frozen) == psutil.STATUS_STOPPED, "it was frozen until another had its partitions"
        frozen.resume()
        more = seen.publish(b"more %d" % number for number in range(120))
        wait_until(lambda: set(more) <= set(calls.counted()), what="all records begun")
        for each in (frozen, unharmed):
            assert each.terminate() == 0

    told = seen.judge(calls.counted())
    unresolved = [story for story in told.values() if not story.resolved]
    # The killed one's own, and what lay in the send queue of the frozen one until it woke up.
    assert {story.waits[-1].text("WAIT_INSTANCE") for story in unresolved} <= {"killed", "frozen"}
    assert all("done" in story.outcomes for story in unresolved if story.waits[-1].text("WAIT_INSTANCE") == "frozen")


def named(settings: Settings, name: str) -> Settings:
    return settings.model_copy(update={"processor": settings.processor.model_copy(update={"instance": name})})


def state(service: Service) -> str:
    return str(psutil.Process(service.pid).status())
