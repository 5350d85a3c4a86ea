"""Of three processors one is killed, one is frozen until the others have its partitions: nothing is lost (P1, P2)."""

from __future__ import annotations

import psutil
import pytest

from tests.faults.processor.observation import Observation
from tests.integration.processor.calls import HANDLERS, Calls
from tests.integration.processor.scenario import ScenarioFactory
from tests.support.kafka_io import Outgoing
from tests.support.processes import Service
from tests.support.waiting import wait_until

NAMES = ("killed", "frozen", "unharmed")


@pytest.mark.fault("F25")
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_three_processors_one_killed_one_frozen_lose_no_record(
    protocol: str, faulty_scenario: ScenarioFactory, calls: Calls
) -> None:
    at = faulty_scenario(f"{HANDLERS}:takes_a_while", 6, max_in_flight=5, group_protocol=protocol)
    with Observation(at.topics, at.settings) as seen:
        killed, frozen, unharmed = (calls.start(at.changed("processor", instance=name)) for name in NAMES)
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
    found = seen.judge(calls.counted())
    unresolved = [story for story in found.values() if not story.resolved]
    # The killed one's own, and what lay in the send queue of the frozen one until it woke up.
    assert {story.waits[-1].text("WAIT_INSTANCE") for story in unresolved} <= {"killed", "frozen"}
    assert all("done" in story.outcomes for story in unresolved if story.waits[-1].text("WAIT_INSTANCE") == "frozen")


@pytest.mark.guarantee("P8.2")
@pytest.mark.fault("F25")
def test_a_frozen_processor_continues_if_another_one_has_handled_what_was_deleted(
    faulty_scenario: ScenarioFactory, calls: Calls
) -> None:
    at = faulty_scenario(f"{HANDLERS}:takes_a_while", 1).of_the_input_alone()
    frozen, other = (calls.start(at.changed("processor", instance=name)) for name in NAMES[1:])
    for each in (frozen, other):
        each.wait_ready()
    at.produce([b"value"] * 3)
    calls.wait_for(3)
    owner = frozen if calls.by(frozen.pid) else other
    left = other if owner is frozen else frozen
    owner.pause()
    at.produce([b"value"] * 3)
    wait_until(lambda: at.committed() == [6], what="the commit of the one that is left")
    at.topics.delete_before(at.topic, {0: 6})
    owner.resume()
    owner.wait_ready()
    assert left.terminate() == 0
    at.produce([Outgoing(b"value", b"%d" % number) for number in range(3)])
    wait_until(lambda: {(0, offset) for offset in (6, 7, 8)} <= calls.by(owner.pid), what="the records after that")
    assert owner.terminate() == 0


def state(service: Service) -> str:
    return str(psutil.Process(service.pid).status())
