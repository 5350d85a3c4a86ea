"""Members of a group that are killed or frozen, or join and leave all the time: nothing is lost, and all is settled."""

from __future__ import annotations

import asyncio
import logging
import struct
import threading
from collections import deque
from contextlib import closing

import psutil
import pytest
from confluent_kafka import TopicCollection

from processor.intake import broker_watch
from tests.faults.processor.conftest import CLASSIC
from tests.faults.processor.observation import Observation
from tests.integration.processor.calls import HANDLERS, Calls
from tests.integration.processor.scenario import Counts, Gate, ScenarioFactory
from tests.support.kafka_io import Outgoing, group_member
from tests.support.processes import Service
from tests.support.tcp_proxy import Fate, KafkaProxy
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.handler import Record

TURNS = 10


@pytest.mark.fault("F26")
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_storm_of_rebalances_leaves_nothing_lost_or_open(protocol: str, faulty_scenario: ScenarioFactory) -> None:
    handler = Counts(0.02)
    at = faulty_scenario(handler, 6, max_in_flight=3, group_protocol=protocol)
    with Observation(at.topics, at.settings) as seen:
        members = deque([at.changed("processor", instance="first").start().wait_joined()])
        for turn in range(TURNS):
            came = at.changed("processor", instance=f"{turn}").start()
            members.append(came)
            seen.publish_until(lambda came=came: came.stats.registered, "work of a new member")  # type: ignore[misc]
            if len(members) > 2:
                members.popleft().stop()
        wait_until(lambda: len(handler.calls) == len(seen.published), what="the calls of all records")
        for member in members:
            member.stop()
    found = seen.judge(handler.calls)
    assert all(story.resolved and set(story.outcomes) == {"done"} for story in found.values())
    instances = {wait.text("WAIT_INSTANCE") for story in found.values() for wait in story.waits}
    assert len(instances) == TURNS + 1, "each has worked"


CONSUMER_GROUP_HEARTBEAT = 68
PARTITIONS = 4


class _Loss:
    """Loses the first answer to a member's heartbeat that has a new assignment of a topic, once it is wanted."""

    def __init__(self, topics: Topics, topic: str) -> None:
        described = topics.admin.describe_topics(TopicCollection([topic]))[topic].result(15)
        bits = (described.topic_id.get_most_significant_bits(), described.topic_id.get_least_significant_bits())
        self._topic_id = struct.pack(">qq", *bits)
        self.wanted = self.happened = False

    def change(self, api_key: int, answer: bytes) -> bytes | None:
        if not self.wanted or api_key != CONSUMER_GROUP_HEARTBEAT or self._topic_id not in answer:
            return answer
        self.wanted, self.happened = False, True
        return None


@pytest.mark.fault("F27")
def test_a_member_that_missed_an_assignment_joins_again(
    processor_scenario: ScenarioFactory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(broker_watch, "COMPARE_EVERY_S", 1.0)
    caplog.set_level(logging.INFO)
    at = processor_scenario(partitions=PARTITIONS, group_protocol="consumer")
    loss = _Loss(at.topics, at.topic)
    with KafkaProxy(at.topics.bootstrap, change=loss.change) as proxy:
        running = at.start(proxy.bootstrap_servers).wait_joined()
        loss.wanted = True
        with closing(group_member(at.topics.bootstrap, at.group, [at.topic])) as other:
            # Without the comparison the coordinator waits for the processor for max.poll.interval.ms, five minutes.
            # Half of them, or one more, since the processor has the redelivery topic, too.
            wait_until(lambda: other.poll(0.1) is None and len(other.assignment()) >= PARTITIONS // 2, 60, "its share")
        assert loss.happened
        at.produce_to_each(1)
        wait_until(lambda: running.done == PARTITIONS, 60, "work on all partitions, when the other one is gone")
        running.stop()
    assert "joining the group again" in caplog.text


JOIN_GROUP, HEARTBEAT = 11, 12
RECORDS = 100


@pytest.mark.fault("F28")
def test_partitions_that_are_lost_are_waited_for(processor_scenario: ScenarioFactory) -> None:
    away, handled = threading.Event(), set[int]()

    async def takes_a_while(record: Record) -> None:
        await asyncio.sleep(0.1 if away.is_set() else 0.01)
        handled.add(record.offset)

    at = processor_scenario(takes_a_while, 1, {"kafka.librdkafka": CLASSIC}, max_in_flight=1)
    at.produce([b"value"] * RECORDS)

    def decide(api_key: int) -> Fate:
        return Fate.HANG_UP if away.is_set() and api_key in (JOIN_GROUP, HEARTBEAT) else Fate.PASS

    with KafkaProxy(at.topics.bootstrap, decide) as proxy:
        running = at.start(proxy.bootstrap_servers, once=True)
        wait_until(lambda: running.done > 5, what="the first records")
        away.set()
        wait_until(lambda: running.stats.rebalances["lost"], what="the end of the session")
        wait_until(lambda: running.ended or "no partitions assigned yet" in running.health.reasons, what="not ready")
        assert len(handled) < RECORDS, "the partition was lost before its end"
        away.clear()
        running.join()
    assert len(handled) == RECORDS
    assert at.committed() == [RECORDS]


@pytest.mark.fault("F29")
def test_a_second_one_waits_for_what_the_first_gives_up(processor_scenario: ScenarioFactory) -> None:
    gate = Gate()
    at = processor_scenario(gate, 2, max_in_flight=1)
    written = at.produce_to_each(RECORDS)
    first = at.start(once=True)
    wait_until(lambda: first.stats.consumed[at.topic], what="the first one's records")
    second = at.start(once=True)
    wait_until(lambda: second.ended or second.stats.consumed[at.topic], what="the second one's share")
    gate.opened.set()
    for running in (first, second):
        running.join()
    assert second.done, "it got a share and worked it off"
    assert len(gate.calls) == written


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
def test_a_frozen_processor_continues_behind_deleted_records(faulty_scenario: ScenarioFactory, calls: Calls) -> None:
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
