"""A source that starts before its sinks have read the log would export what was finished long ago."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition

from tests.conftest import SettingsFactory
from tests.integration.connect.commands import Commands
from tests.integration.connect.exporting import ExportingFactory
from tests.integration.sink.wait_topic import WaitTopic, new_id, rows_of, wait_record
from tests.support.committed_offsets import commit_as_operator
from tests.support.connect_worker import ConnectWorker
from tests.support.database import Database
from tests.support.kafka_io import Outgoing
from tests.support.naming import Names
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.settings.tree import Settings
from waitreg.connect.caught_up import SinksBehind, TableSink, await_sinks, table_sinks
from waitreg.connect.our_services import OurServices
from waitreg.connect.state import ConnectorState
from waitreg.local.environment import as_environment

TWO = (Outgoing(b"", key=b"one"), Outgoing(b"", key=b"two"))
POSITION = "insert into sink_progress values (%s, 'id', %s, %s, now(), now()) returning 1"
MOVED = "update sink_progress set next_offset = %s where partition = 0 returning 1"


class Clock:
    """A clock that runs during a wait, in which a sink commits the next of its offsets at each look."""

    def __init__(self, commit: Callable[[int], object]) -> None:
        self._commit = commit
        self._now = 0.0
        self.to_commit: list[int] = []
        self.said: list[str] = []

    def monotonic(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += 60 * seconds
        if self.to_commit:
            self._commit(self.to_commit.pop(0))

    def report(self, name: str, details: str) -> None:
        self.said.append(details)


class Sink:
    """The consumer group of a Connect sink, whose position the test sets."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.topic = settings.wait.topic
        self.group = settings.sink.connect_group
        self.clock = Clock(self.commit)

    def commit(self, offset: int, partition: int = 0) -> None:
        place = TopicPartition(self.topic, partition, offset)
        commit_as_operator(self.settings.kafka.bootstrap_servers, self.group, [place])

    def wait(self) -> None:
        await_all([self.state()], self.settings, self.clock)

    def state(self) -> ConnectorState:
        config = {
            "topics": f"{self.topic},{self.topic}.not.made.yet",
            "consumer.override.group.id": self.group,
            "transforms.row.type": "io.waitreg.connect.WaitRecordToRow",
        }
        return ConnectorState("wait.sink", "sink", "RUNNING", "", (), config)


def await_all(states: list[ConnectorState], settings: Settings, clock: Clock) -> None:
    await_sinks(states, settings, OurServices(settings), clock.report, clock.monotonic, clock.sleep)


@pytest.fixture
def sink(prepared: SettingsFactory, names: Names, request: pytest.FixtureRequest) -> Sink:
    """A sink of a wait topic with one partition, or as many as the test asks for."""
    own = {"sink.kind": "connect", "sink.connect_group": names("group")}
    return Sink(prepared({**own, "wait.partitions": getattr(request, "param", 1)}))


def in_a_transaction(settings: Settings, values: list[bytes], key: bytes = b"key") -> Producer:
    """Write records in a transaction that is still open."""
    given = {"bootstrap.servers": settings.kafka.bootstrap_servers, "transactional.id": str(uuid.uuid4())}
    producer = Producer(given)
    producer.init_transactions(30)
    producer.begin_transaction()
    for value in values:
        producer.produce(settings.wait.topic, value, key)
    producer.flush(30)
    return producer


@pytest.mark.guarantee("P3.20")
def test_the_wait_ends_at_the_log_end_of_its_start(sink: Sink, topics: Topics) -> None:
    sink.wait()  # nothing is there, and a topic that a source will make isn't either
    topics.produce(sink.topic, [*TWO])
    sink.clock.to_commit = [1, 2]
    sink.wait()
    assert sink.clock.to_commit == []
    assert sink.clock.said[0] == "2 offsets to what was the log's end"


def test_a_sink_that_does_not_move_ends_the_wait(sink: Sink, topics: Topics) -> None:
    topics.produce(sink.topic, [*TWO])
    sink.clock.to_commit = [1]
    with pytest.raises(SinksBehind, match=r"wait.sink is 1 offsets behind .* hasn't moved for .* then run this again"):
        sink.wait()


@pytest.mark.parametrize("sink", [3], indirect=True)
def test_the_wait_continues_for_one_partition_that_is_behind(sink: Sink, topics: Topics) -> None:
    for number in range(12):
        in_a_transaction(sink.settings, [b"value"], str(number).encode()).commit_transaction(30)
    topics.wait_settled(sink.topic)
    last = {record.partition: record.offset for record in topics.read(sink.topic)}
    for partition, offset in last.items():
        sink.commit(offset + (partition != 1), partition)
    with pytest.raises(SinksBehind, match="is 2 offsets behind"):
        sink.wait()
    sink.commit(last[1] + 1, 1)
    sink.wait()


@pytest.mark.guarantee("P4.16")
def test_a_new_source_waits_for_our_sink_to_read(prepared: SettingsFactory, database: Database, topics: Topics) -> None:
    settings = prepared({"wait.partitions": 2})
    clock = Clock(lambda offset: database.rows(settings, MOVED, offset))

    def wait() -> None:
        await_all([], settings, clock)

    wait()  # no sink has been here
    for partition in range(2):
        records: list[Outgoing | bytes] = [Outgoing(b"", key=b"key", partition=partition) for _ in range(3)]
        topics.produce(settings.wait.topic, records)
        database.rows(settings, POSITION, settings.wait.topic, partition, 3 * partition)
    with pytest.raises(SinksBehind, match=r"waitreg sink is 3 offsets behind .* Create no source before"):
        wait()
    clock.said.clear()
    clock.to_commit = [2, 3]
    wait()
    assert (clock.to_commit, clock.said[0]) == ([], "3 offsets to what was the log's end")


def test_without_a_known_sink_the_group_of_the_settings_counts(sink: Sink) -> None:
    other = ConnectorState("audit", "sink", "RUNNING", "", (), {"topics": sink.topic})
    assert table_sinks([other], sink.settings) == [
        TableSink(f"the sink of group {sink.group}", sink.group, (sink.topic,))
    ]
    rows = {"topics": sink.topic, "transforms.row.type": "io.waitreg.connect.WaitRecordToRow"}
    own = ConnectorState("wait.sink", "sink", "RUNNING", "", (), rows)
    assert table_sinks([other, own], sink.settings) == [TableSink("wait.sink", "connect-wait.sink", (sink.topic,))]


@pytest.mark.timeout(300)
def test_the_check_of_a_source_ends_when_its_sink_has_read_the_log(
    connect: ConnectWorker,
    exporting_from: ExportingFactory,
    prepared: SettingsFactory,
    database: Database,
    names: Names,
    tmp_path: Path,
) -> None:
    name, source = names("wait.sink"), names("expired.source")
    given = {"connect.url": connect.url, "sink.kind": "connect", "sweeper.kind": "connect"}
    at = exporting_from(prepared({**given, "sink.connect_group": f"connect-{name}", "wait.partitions": 1}))
    settings, rest, run = at.settings, at.connectors.rest, Commands(tmp_path, at.settings, names)
    at.connectors.remove_at_end(name)
    files = [run.file("expired.source", "source"), run.file("wait.sink")]
    log = WaitTopic(at.topics, settings.wait.topic)
    log.write(wait_record(new_id(), 0))
    early = run("check", *files)
    assert (early.code, f"{name} doesn't exist yet" in early.errors) == (2, True), early.errors

    rest.put(name, json.loads(run("print", files[1]).output))
    at.connectors.wait_running(name)
    rest.stop(name)
    log.write(wait_record(new_id(), 0))
    check = subprocess.Popen(
        [sys.executable, "-m", "waitreg", "connect", "check", files[0]],
        cwd=tmp_path,
        env=as_environment(settings),
        stdin=subprocess.DEVNULL,
        stdout=(tmp_path / "out").open("wb"),
        stderr=subprocess.STDOUT,
    )
    said = (tmp_path / "out").read_text
    try:
        wait_until(lambda: f"waiting for {name}" in said(), 120, "the report of the awaited sink")
        assert check.poll() is None, said()
        rest.resume(name)
        assert check.wait(120) == 0, said()
    finally:
        check.kill()
    assert rows_of(database, settings) == log.rows

    # The other way round: a source that runs would not wait for a sink that reads the log from its start.
    at.connectors.remove_at_end(source)
    rest.put(source, json.loads(run("print", files[0]).output))
    at.connectors.wait_running(source)
    rest.remove(name)
    refused = run("check", files[1])
    assert (refused.code, f"until {name}, which doesn't exist yet" in refused.errors) == (2, True), refused.errors
