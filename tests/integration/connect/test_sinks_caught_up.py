"""A source that starts before its sinks have read the log would export what was finished long ago."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition

from tests.conftest import SettingsFactory
from tests.integration.connect.command_setting import connect_settings, own_sink_file, register
from tests.integration.connect.exporting import Exporting
from tests.integration.connect.families import SourceFamily
from tests.support.command import run_waitreg
from tests.support.committed_offsets import commit_as_operator
from tests.support.connect_connectors import Connectors
from tests.support.connect_rest import ConnectRest
from tests.support.database import Database
from tests.support.kafka_io import Outgoing
from tests.support.naming import Names
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.cli.connect.caught_up import SinksBehind, TableSink, await_connect_sinks, table_sinks
from wait_registry.cli.connect.connector_file import own_files
from wait_registry.cli.connect.lag import SinkLags, read_group_lag
from wait_registry.cli.connect.state import ConnectorState
from wait_registry.demo.environment import as_environment
from wait_registry.kafka.clients import admin
from wait_registry.local.connect_worker import ConnectWorker
from wait_registry.settings.root import Settings


class Sink:
    """The consumer group of a sink, whose position the test sets; and a clock that runs during a wait."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.topic = settings.wait.topic
        self.group = settings.sink.connect_group
        self.to_commit: list[int] = []
        self.said: list[str] = []
        self._now = 0.0

    def commit(self, offset: int) -> None:
        place = TopicPartition(self.topic, 0, offset)
        commit_as_operator(self.settings.kafka.bootstrap_servers, self.group, [place])

    def monotonic(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += 60 * seconds
        if self.to_commit:
            self.commit(self.to_commit.pop(0))

    def wait(self) -> None:
        sinks = [TableSink("wait.sink", self.group, (self.topic, f"{self.topic}.not.made.yet"))]
        await_connect_sinks(sinks, self.settings, lambda word, name, details: self.said.append(details), self)


@pytest.fixture
def sink(prepared: SettingsFactory, names: Names) -> Sink:
    return Sink(prepared({"wait.partitions": 1, "sink.kind": "connect", "sink.connect_group": names("group")}))


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
    topics.produce(sink.topic, [Outgoing(b"", key=b"one"), Outgoing(b"", key=b"two")])
    sink.to_commit = [1, 2]
    sink.wait()
    assert sink.to_commit == []
    assert sink.said[0] == "2 offsets to what was the log's end"


def test_a_sink_that_does_not_move_ends_the_wait(sink: Sink, topics: Topics) -> None:
    topics.produce(sink.topic, [Outgoing(b"", key=b"one"), Outgoing(b"", key=b"two")])
    sink.to_commit = [1]
    with pytest.raises(SinksBehind, match=r"wait.sink is 1 offsets behind .* hasn't moved for .* then run this again"):
        sink.wait()


def test_the_wait_ignores_the_marker_after_the_last_record(sink: Sink, topics: Topics) -> None:
    in_a_transaction(sink.settings, [b"one", b"two"]).commit_transaction(30)
    topics.wait_settled(sink.topic)
    sink.commit(2)  # a sink never commits the marker
    sink.wait()


def test_the_wait_continues_for_one_partition_that_is_behind(
    prepared: SettingsFactory, topics: Topics, names: Names
) -> None:
    own = {"wait.partitions": 3, "sink.kind": "connect", "sink.connect_group": names("group")}
    sink = Sink(prepared(own))
    for number in range(12):
        in_a_transaction(sink.settings, [b"value"], str(number).encode()).commit_transaction(30)
    topics.wait_settled(sink.topic)
    last = {record.partition: record.offset for record in topics.read(sink.topic)}
    for partition, offset in last.items():
        place = TopicPartition(sink.topic, partition, offset + (partition != 1))
        commit_as_operator(sink.settings.kafka.bootstrap_servers, sink.group, [place])
    with pytest.raises(SinksBehind, match="is 2 offsets behind"):
        sink.wait()
    place = TopicPartition(sink.topic, 1, last[1] + 1)
    commit_as_operator(sink.settings.kafka.bootstrap_servers, sink.group, [place])
    sink.wait()


def test_status_and_doctor_report_the_same_lag(sink: Sink, topics: Topics) -> None:
    topics.produce(sink.topic, [Outgoing(b"", key=b"one"), Outgoing(b"", key=b"two")])
    sink.commit(1)
    config = {"topics": sink.topic, "consumer.override.group.id": sink.group}
    state = ConnectorState("wait.sink", "sink", "RUNNING", "", "", (), config)
    producer = in_a_transaction(sink.settings, [b"three"])
    try:
        lag = SinkLags(sink.settings.kafka).of([state])["wait.sink"]
        kafka = sink.settings.kafka
        assert lag == read_group_lag(kafka, admin(kafka), sink.group, sink.topic).offsets == 2
    finally:
        producer.abort_transaction(30)


def test_without_a_known_sink_the_group_of_the_settings_counts(sink: Sink) -> None:
    other = ConnectorState("audit", "sink", "RUNNING", "", "", (), {"topics": sink.topic})
    assert table_sinks([other], sink.settings) == [
        TableSink(f"the sink of group {sink.group}", sink.group, (sink.topic,))
    ]
    rows = {"topics": sink.topic, "transforms.row.type": "io.waitreg.connect.WaitRecordToRow"}
    own = ConnectorState("wait.sink", "sink", "RUNNING", "", "", (), rows)
    assert table_sinks([other, own], sink.settings) == [TableSink("wait.sink", "connect-wait.sink", (sink.topic,))]


@pytest.fixture
def exporter(
    connect: ConnectWorker, prepared: SettingsFactory, topics: Topics, names: Names
) -> Iterator[tuple[Settings, Exporting]]:
    """Settings with Kafka Connect in both places, and what cleans up after a source."""
    settings = prepared(
        connect_settings(
            connect.url,
            {"sweeper.kind": "connect", "sink.connect_group": f"connect-{names('wait.sink')}", "wait.partitions": 1},
        )
    )
    own = Exporting(SourceFamily("debezium"), Connectors(ConnectRest(connect.url), names), topics, settings)
    yield settings, own
    for name in ("expired.source", "wait.sink"):
        if ConnectRest(connect.url).status(names(name)):
            ConnectRest(connect.url).remove(names(name))
    own.close()


@pytest.mark.timeout(300)
def test_apply_creates_the_source_after_its_sink_has_read_the_log(
    exporter: tuple[Settings, Exporting],
    connect: ConnectWorker,
    topics: Topics,
    database: Database,
    names: Names,
    tmp_path: Path,
) -> None:
    settings, _ = exporter
    rest, name = ConnectRest(connect.url), names("wait.sink")
    document = json.loads(own_files("source", "debezium")[0].read_text("utf-8")) | {"name": names("expired.source")}
    (tmp_path / "source.json").write_text(json.dumps(document), "utf-8")
    own_sink_file(tmp_path, name)
    files = ["source.json", f"{name}.json"]
    waits = register(topics, settings)

    rest.put(name, {"connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector", "topics": settings.wait.topic})
    rest.stop(name)
    apply = subprocess.Popen(
        [sys.executable, "-m", "wait_registry", "connect", "apply", *files],
        cwd=tmp_path,
        env=as_environment(settings),
        stdin=subprocess.DEVNULL,
        stdout=(tmp_path / "out").open("wb"),
        stderr=subprocess.STDOUT,
    )
    said = (tmp_path / "out").read_text
    try:
        wait_until(lambda: f"waiting for  {name}" in said(), 120, "the report of the awaited sink")
        assert rest.status(names("expired.source")) == {}, said()
        rest.resume(name)
        assert apply.wait(120) == 0, said()
    finally:
        apply.kill()
    words = [line.split()[:2] for line in said().splitlines()]
    assert words.index(["created", names("expired.source")]) > words.index(["waiting", "for"]), said()
    shown = database.rows(settings, "select wait_expiration_uuid from wait")
    assert shown == [(waits,)]

    # The other way round: the source would not wait for a sink that reads the log from its start.
    rest.remove(name)
    refused = run_waitreg(tmp_path, "connect", "apply", f"{name}.json", settings=settings)
    assert (refused.code, f"until {name}, which doesn't exist yet" in refused.errors) == (2, True), refused.errors
    assert rest.status(name) == {}
