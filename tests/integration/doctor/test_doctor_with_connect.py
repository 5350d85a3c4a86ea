"""With a Connect sink, doctor and queries use its group; with a source, doctor asks for no sweeper."""

from __future__ import annotations

import json
from pathlib import Path

from confluent_kafka import TopicPartition

from tests.conftest import SettingsFactory
from tests.integration.connect.outbox import register
from tests.integration.doctor.findings import look, record_sweep
from tests.support.command import run_waitreg
from tests.support.committed_offsets import commit_as_operator
from tests.support.database import Database
from tests.support.kafka_io import Outgoing
from tests.support.settings import changed
from tests.support.topics import Topics
from wait_registry.diagnosis import Severity
from wait_registry.settings.sweeper import SweeperKind
from waitreg.doctor import connect_tables


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


def test_with_a_source_doctor_asks_for_no_sweep_and_no_sweeper(
    prepared: SettingsFactory, database: Database, tmp_path: Path
) -> None:
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
