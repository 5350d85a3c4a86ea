"""Beside a Connect sink doctor and queries go by its group, and no position of ours is missed."""

from __future__ import annotations

import json
from pathlib import Path

from confluent_kafka import TopicPartition

from tests.conftest import SettingsFactory
from tests.integration.doctor.looking import look
from tests.support.command import run_waitreg
from tests.support.committed_offsets import commit_as_operator
from tests.support.database import Database
from tests.support.kafka_io import Outgoing
from tests.support.topics import Topics
from wait_registry.cli.checks import connect_tables
from wait_registry.diagnosis import Severity
from wait_registry.settings.sweeper import SweeperKind


def test_a_group_that_cannot_be_asked_is_a_warning_since_the_sweeper_needs_nothing_of_it(
    settings_for: SettingsFactory,
) -> None:
    [line] = connect_tables.position(settings_for({"sink.kind": "connect"}))  # whose wait topic was never made
    assert (line.severity, "is unknown" in line.message) == (Severity.WARNING, True), line
    assert "--operation Describe" in line.fix


def test_the_groups_lag_is_told_and_what_only_a_rebuild_mends(
    prepared: SettingsFactory, topics: Topics, database: Database, tmp_path: Path
) -> None:
    settings = prepared({"wait.partitions": 1, "sink.kind": "connect"})
    sink = settings.sink.model_copy(update={"connect_group": f"{settings.processor.group}.sink"})
    settings = settings.model_copy(update={"sink": sink})
    topics.produce(settings.wait.topic, [Outgoing(b"", key=b"one"), Outgoing(b"", key=b"two")])

    found = look(settings, "sweeper")
    assert found.standing("tables.freshness") is Severity.OK, "no position of ours is expected"
    commit_as_operator(
        settings.kafka.bootstrap_servers, sink.connect_group, [TopicPartition(settings.wait.topic, 0, 1)]
    )
    with database.connect(settings) as connection:
        connection.execute(
            "insert into sweep (wait_topic, started_at, duration_s, due, counts, skipped, result)"
            ' values (%s, now(), 1, 5, \'{"exported": 3}\', \'[{"rows": 2, "reason": "2 unknown rows"}]\','
            " 'done')",
            (settings.wait.topic,),
        )
        connection.execute(
            "insert into sink_progress values (%s, 'left over', 0, 7, now(), now())", (settings.wait.topic,)
        )

    found = look(settings, "sweeper")
    [position] = found.of("tables.position")
    assert (position.severity, "1 offsets to the end" in position.message) == (Severity.WARNING, True), position
    assert "the sink doesn't run" in position.message
    left = found.of("tables.freshness")[1]
    assert (left.severity, "rebuild" in left.fix) == (Severity.WARNING, True), left
    last = found.one("sweep.last")
    assert (last.severity, "2 unknown rows" in last.message) == (Severity.WARNING, True), last

    asked = run_waitreg(tmp_path, "query", "stuck_now", settings=settings)
    assert asked.code == 0, asked.errors
    assert "1 offsets behind the log" in asked.output and "2 unknown rows" in asked.output

    exporting = settings.sweeper.model_copy(update={"kind": SweeperKind.CONNECT})
    settings = settings.model_copy(update={"sweeper": exporting})
    asked = run_waitreg(tmp_path, "query", "stuck_now", settings=settings)
    assert "1 offsets behind the log" in asked.output and "unknown rows" not in asked.output, "nobody sweeps any more"


def test_where_a_source_exports_no_sweep_is_asked_for_and_nobody_is_told_to_start_a_sweeper(
    prepared: SettingsFactory, database: Database, tmp_path: Path
) -> None:
    settings = prepared({"wait.partitions": 1, "sink.kind": "connect", "sweeper.kind": "connect"})
    with database.connect(settings) as connection:
        connection.execute(
            "insert into sweep (wait_topic, started_at, duration_s, due, counts, skipped, result)"
            ' select %s, now() - make_interval(hours => n), 1, 5, \'{"exported": 3, "superseded": 7}\','
            " '[]', 'done'"
            " from generate_series(1, 5) as n",
            (settings.wait.topic,),
        )
        connection.execute(
            "insert into wait (wait_expiration_uuid, original_topic, original_headers, wait_expiration_time,"
            " wait_topic, wait_partition, wait_offset)"
            " values ('a', 'orders', '[]', now() - interval '1 hour', %s, 0, 0)",
            (settings.wait.topic,),
        )
    ended = run_waitreg(tmp_path, "doctor", "--json", settings=settings)
    told = json.loads(ended.output)
    assert told["services"] == ["processor", "connect"]
    checks = {check["id"]: check for check in told["checks"]}
    assert not [id for id in checks if "sweeper" in id or "transactions" in id or id == "sweep.last"]
    due = checks["sweep.due"]
    assert (due["severity"], "1 due" in due["message"], "connect status" in due["fix"]) == ("warning", True, True), due
    assert "waitreg sweeper" not in ended.output
    assert "tables.freshness" not in checks, "what sweeps of another time have found says nothing"
