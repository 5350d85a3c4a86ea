"""How current tables and group are, with Kafka Connect too, which rows are overdue, and whether clocks agree."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.conftest import SettingsFactory
from tests.integration.connect.outbox import register
from tests.integration.doctor.findings import Findings, look, record_sweep
from tests.support.command import run_waitreg
from tests.support.committed_offsets import commit_as_operator
from tests.support.database import Database
from tests.support.kafka_io import Outgoing
from tests.support.settings import changed
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.diagnosis import Diagnosis, Severity
from wait_registry.kafka.clients import admin
from wait_registry.kafka.cluster import describe_topic
from wait_registry.settings.processor import SourceKind
from wait_registry.settings.sweeper import SweeperKind
from wait_registry.settings.tree import Settings
from waitreg.doctor import connect_tables, group, postgres, sweeps, tables
from waitreg.doctor.catalogue import all_checks
from waitreg.doctor.check import Look, run_checks
from waitreg.doctor.clocks import broker_clock


def say(look: Look, settings: Settings) -> Diagnosis:
    [check] = [check for check in all_checks() if check.look is look]
    alone = [type(check)(check.id, check.subject, look, fix=check.fix)]
    return Findings(list(run_checks(alone, settings, lambda _: None))).lines[0]


@pytest.mark.parametrize(
    ("topic_id", "offset", "age", "standing", "said"),
    [
        ("{now}", 0, "0 s", Severity.OK, "1 offsets behind the end"),
        ("{now}", 1, "40 hours", Severity.OK, "0 offsets behind the end"),
        ("{now}", 0, "20 hours", Severity.WARNING, "20 h 0 min old: at 1 d 12 h sink and sweeper refuse it"),
        ("{now}", 0, "40 hours", Severity.ERROR, "waitreg rebuild"),
        ("{now}", 99, "0 s", Severity.ERROR, "has lost its end"),
        ("another", 0, "0 s", Severity.ERROR, "was recreated"),
    ],
)
def test_the_position_of_the_tables(
    prepared: SettingsFactory,
    topics: Topics,
    database: Database,
    topic_id: str,
    offset: int,
    age: str,
    standing: Severity,
    said: str,
) -> None:
    settings = prepared({"wait.partitions": 1})
    topics.produce(settings.wait.topic, [Outgoing(b"", key=b"one")])
    now = describe_topic(admin(settings.kafka), settings.wait.topic).topic_id
    _record_position(database, settings, topic_id.format(now=now), offset, age, "0 s")
    line = say(tables.position, settings)
    assert (line.severity, said in line.message) == (standing, True), line


@pytest.mark.parametrize(("silent", "standing"), [("30 s", Severity.OK), ("10 minutes", Severity.WARNING)])
def test_a_sink_that_has_not_written_for_minutes_is_a_warning(
    prepared: SettingsFactory, database: Database, silent: str, standing: Severity
) -> None:
    settings = prepared()
    assert say(tables.freshness, settings).severity is Severity.OK
    _record_position(database, settings, "any", 0, silent, silent)
    line = say(tables.freshness, settings)
    assert line.severity is standing, line


def test_records_without_a_consumer_are_a_warning(prepared: SettingsFactory, topics: Topics) -> None:
    settings = prepared()
    topic, own = settings.processor.topics[0], settings.processor.group
    line = say(group.group_offsets, settings)
    nothing = f"group {own}: 0 of 3 partitions of {topic} have one, 0 offsets to the end, 0 members in the group"
    assert (line.severity, line.message) == (Severity.OK, nothing)
    topics.produce(topic, [b"order"] * 7)
    line = say(group.group_offsets, settings)
    assert line.severity is Severity.WARNING
    assert "7 offsets to the end, 0 members in the group" in line.message
    share = settings.processor.model_copy(update={"source": SourceKind.SHARE})
    shared = say(group.group_offsets, settings.model_copy(update={"processor": share}))
    assert (shared.severity, "is a share group" in shared.message) == (Severity.OK, True)
    with _member(settings):
        line = say(group.group_offsets, settings)
    seen = f"0 of 3 partitions of {topic} have one, 7 offsets to the end, 1 members in the group"
    assert (line.severity, seen in line.message) == (Severity.WARNING, True), "it has never committed"


def test_what_is_not_due_is_told_apart(prepared: SettingsFactory, topics: Topics) -> None:
    settings = prepared({"processor.delay_s": 3600})
    hour_ago_ms = int(time.time() * 1000) - 3_700_000
    topics.produce(
        settings.processor.topics[0], [Outgoing(b"", partition=0, timestamp_ms=hour_ago_ms), Outgoing(b"", partition=0)]
    )
    topic = settings.processor.topics[0]
    assert "2 offsets to the end (1 of them due), 0 members" in say(group.group_offsets, settings).message
    ahead_ms = hour_ago_ms + 2 * 3_600_000
    topics.produce(topic, [Outgoing(b"", partition=1, timestamp_ms=at_ms) for at_ms in (ahead_ms, hour_ago_ms)])
    assert "4 offsets to the end (at least 1 of them due), 0 members" in say(group.group_offsets, settings).message
    handled = [TopicPartition(topic, 0, 2), TopicPartition(topic, 1, 1)]
    commit_as_operator(topics.bootstrap, settings.processor.group, handled)
    assert "1 offsets to the end (at least 0 of them due), 0 members" in say(group.group_offsets, settings).message


def test_a_transaction_that_stays_open_is_a_warning(
    prepared: SettingsFactory, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = prepared()
    topic = settings.processor.topics[0]
    producer = Producer({"bootstrap.servers": topics.bootstrap, "transactional.id": topic})
    producer.init_transactions(60)

    def found(*between_looks: Callable[[], object]) -> list[str]:
        monkeypatch.setattr(group, "time", SimpleNamespace(sleep=lambda _: [each() for each in between_looks]))
        producer.begin_transaction()
        producer.produce(topic, b"", partition=1, timestamp=int((time.time() - 86_400) * 1000))
        producer.flush(60)
        said = [one.message for one in group.group_offsets(settings) if "transaction" in one.message]
        if not between_looks:
            producer.abort_transaction(60)
        return said

    (said,) = found()
    assert f"open for 5 s or longer, and nothing behind it can be read: {topic}[1] at offset 0" in said
    assert found(producer.abort_transaction, lambda: topics.wait_settled(topic)) == []


def test_rows_that_are_long_due_are_a_warning(prepared: SettingsFactory, database: Database) -> None:
    settings = prepared()
    assert say(sweeps.due, settings).message == "none is due"
    with database.connect(settings) as connection:
        register(connection, "a", 0, 0, -20, settings.wait.topic)
        assert say(sweeps.due, settings).severity is Severity.OK
        register(connection, "b", 0, 1, -3600, settings.wait.topic)
    line = say(sweeps.due, settings)
    assert line.severity is Severity.WARNING
    assert line.message.startswith("2 due, the oldest for 35")


@pytest.mark.parametrize(
    ("result", "skipped", "ago", "standing", "said"),
    [
        ("done", "[]", "10 s", Severity.OK, "done: 5 due, 3 exported, 1 redelivered"),
        ("partial", '[{"partition": 1, "reason": "a transaction is open"}]', "1 s", Severity.WARNING, "is open"),
        ("done", "[]", "10 minutes", Severity.WARNING, "one is due every 30 s: no sweeper is running"),
    ],
)
def test_an_old_or_partial_last_sweep_is_a_warning(
    prepared: SettingsFactory, database: Database, result: str, skipped: str, ago: str, standing: Severity, said: str
) -> None:
    settings = prepared()
    assert say(sweeps.last, settings).message == "none is recorded yet"
    record_sweep(database, settings, ago, skipped=skipped, result=result)
    line = say(sweeps.last, settings)
    assert (line.severity, said in line.message) == (standing, True), line


def test_the_clock_of_a_postgres_on_this_host_is_ours(prepared: SettingsFactory) -> None:
    [line] = postgres.clock(prepared())
    assert line.severity is Severity.OK
    assert "s against this host's, known to " in line.message


def test_the_broker_s_clock_is_judged_by_its_newest_append(prepared: SettingsFactory, topics: Topics) -> None:
    settings = prepared()
    [line] = broker_clock(settings)
    assert (line.severity, "no record yet" in line.message) == (Severity.OK, True)
    topics.produce(settings.wait.topic, [Outgoing(b"", key=b"one")])
    [line] = broker_clock(settings)
    assert (line.severity, "not ahead of this host's" in line.message) == (Severity.OK, True)


def test_a_broker_that_stamps_the_future_is_an_error(settings_for: SettingsFactory, topics: Topics) -> None:
    settings = settings_for()
    # A broker with such a clock can't be had here: a topic whose producers stamp the records shows the same.
    topics.create(settings.wait.topic, 2, message__timestamp__type="CreateTime")
    in_an_hour_ms = time.time_ns() // 1_000_000 + 3_600_000
    topics.produce(settings.wait.topic, [Outgoing(b"", key=b"one", timestamp_ms=in_an_hour_ms)])
    [line] = broker_clock(settings)
    assert line.severity is Severity.ERROR
    assert "ahead of this host's: more than half of wait.skew_allowance_s = 5 s" in line.message
    assert "NTP" in line.fix


@contextmanager
def _member(settings: Settings) -> Iterator[None]:
    consumer = Consumer(
        {"bootstrap.servers": settings.kafka.bootstrap_servers, "group.id": settings.processor.group}
        | {"enable.auto.commit": False}
    )
    try:
        consumer.subscribe(list(settings.processor.topics))
        wait_until(lambda: consumer.poll(0.1) or consumer.assignment(), what="an assignment")
        yield
    finally:
        consumer.close()


def _record_position(database: Database, settings: Settings, topic_id: str, offset: int, age: str, silent: str) -> None:
    database.execute(
        settings,
        "insert into sink_progress values (%s, %s, 0, %s, now() - %s::interval, now() - %s::interval)",
        (settings.wait.topic, topic_id, offset, age, silent),
    )


def test_a_group_that_cannot_be_described_is_a_warning(settings_for: SettingsFactory) -> None:
    [line] = connect_tables.position(settings_for({"sink.kind": "connect"}))  # whose wait topic was never created
    assert (line.severity, "is unknown" in line.message) == (Severity.WARNING, True), line
    assert "--operation Describe" in line.fix


def test_doctor_and_queries_report_the_lag_of_the_group(
    prepared: SettingsFactory, topics: Topics, database: Database, tmp_path: Path
) -> None:
    settings = prepared({"wait.partitions": 1, "sink.kind": "connect"})
    settings = changed(settings, "sink", connect_group=f"{settings.processor.group}.sink")
    topics.produce(settings.wait.topic, [Outgoing(b"", key=b"one"), Outgoing(b"", key=b"two")])
    found = look(settings, "sweeper")
    assert found.standing("tables.freshness") is Severity.OK, "no position of ours is expected"
    commit_as_operator(
        settings.kafka.bootstrap_servers, settings.sink.connect_group, [TopicPartition(settings.wait.topic, 0, 1)]
    )
    record_sweep(database, settings, skipped='[{"rows": 2, "reason": "2 unknown rows"}]')
    left = "insert into sink_progress values (%s, 'left over', 0, 7, now(), now()) returning 1"
    database.rows(settings, left, settings.wait.topic)
    found = look(settings, "sweeper")
    [position] = found.of("tables.position")
    assert (position.severity, "1 offsets to the end" in position.message) == (Severity.WARNING, True), position
    assert "the sink doesn't run" in position.message
    position = found.of("tables.freshness")[1]
    assert (position.severity, "rebuild" in position.fix) == (Severity.WARNING, True), position
    last = found.one("sweep.last")
    assert (last.severity, "2 unknown rows" in last.message) == (Severity.WARNING, True), last
    asked = run_waitreg(tmp_path, "query", "stuck_now", settings=settings)
    assert asked.code == 0, asked.errors
    assert "1 offsets behind the log" in asked.output and "2 unknown rows" in asked.output
    settings = changed(settings, "sweeper", kind=SweeperKind.CONNECT)
    asked = run_waitreg(tmp_path, "query", "stuck_now", settings=settings)
    assert "1 offsets behind the log" in asked.output and "unknown rows" not in asked.output, "no sweeper runs any more"


def test_with_a_source_doctor_wants_no_sweeper(prepared: SettingsFactory, database: Database, tmp_path: Path) -> None:
    settings = prepared({"wait.partitions": 1, "sink.kind": "connect", "sweeper.kind": "connect"})
    for hours in range(1, 6):
        record_sweep(database, settings, f"{hours} h", '{"exported": 3, "superseded": 7}')
    with database.connect(settings) as connection:
        register(connection, "a", 0, 0, -3600, settings.wait.topic)
    ended = run_waitreg(tmp_path, "doctor", "--json", settings=settings)
    report = json.loads(ended.output)
    assert report["services"] == ["processor", "connect"]
    checks = {check["id"]: check for check in report["checks"]}
    assert not [id for id in checks if "sweeper" in id or "transactions" in id or id == "sweep.last"]
    due = checks["sweep.due"]
    assert (due["severity"], "1 due" in due["message"], "expired.source" in due["fix"]) == ("warning", True, True), due
    assert "waitreg sweeper" not in ended.output
    assert "tables.freshness" not in checks, "old sweeps don't matter"
