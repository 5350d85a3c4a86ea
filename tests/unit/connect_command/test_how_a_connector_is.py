"""What the workers say of a connector, read and judged: runs, failed, held; and which of them a command is about."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.evidence import ROOT
from wait_registry.cli.connect.apply import remarks
from wait_registry.cli.connect.cluster import changed_properties, outcome
from wait_registry.cli.connect.connector_file import Connector
from wait_registry.cli.connect.roles import exporters_first, sink_group, what_remains
from wait_registry.cli.connect.state import Chosen, ConnectorState, as_json, as_lines, essence, is_well
from wait_registry.cli.connect.watch import Look
from wait_registry.diagnosis import Severity
from wait_registry.settings.loading import load_settings

TRACE = """org.apache.kafka.connect.errors.ConnectException: Exiting WorkerSinkTask due to unrecoverable exception.
\tat org.apache.kafka.connect.runtime.WorkerSinkTask.deliverMessages(WorkerSinkTask.java:652)
Caused by: org.apache.kafka.connect.errors.ConnectException: JDBC sink connector failure
\tat io.debezium.connector.jdbc.JdbcSinkConnectorTask.put(JdbcSinkConnectorTask.java:111)
Caused by: org.postgresql.util.PSQLException: Connection to db:5432 refused.
\t... 12 more
"""


def state(name: str, own: str, *tasks: str, kind: str = "sink", trace: str = TRACE) -> ConnectorState:
    def part(word: str) -> dict[str, Any]:
        failed = {"trace": trace} if word == "FAILED" else {}
        return {"state": word, "worker_id": "w:8083", **failed}

    status = {
        "name": name,
        "type": kind,
        "connector": part(own),
        "tasks": [{"id": number, **part(word)} for number, word in enumerate(tasks)],
    }
    return ConnectorState.of(status, {"config": {"topics": "a"}})


@pytest.mark.parametrize(
    ("own", "tasks", "runs", "failed", "held"),
    [
        ("RUNNING", ("RUNNING", "RUNNING"), True, False, False),
        ("PAUSED", ("PAUSED", "FAILED"), False, True, True),
        ("RUNNING", (), False, False, False),
        ("RUNNING", ("RUNNING", "FAILED"), False, True, False),
        ("FAILED", (), False, True, False),
        ("RUNNING", ("UNASSIGNED",), False, False, False),
        ("RUNNING", ("RESTARTING",), False, False, False),
        ("PAUSED", ("PAUSED",), False, False, True),
        ("STOPPED", (), False, False, True),
    ],
)
def test_it_runs_when_it_and_all_its_tasks_do(
    own: str, tasks: tuple[str, ...], runs: bool, failed: bool, held: bool
) -> None:
    found = state("wait.sink", own, *tasks)
    assert (found.runs, found.failed, found.held) == (runs, failed, held)


@pytest.mark.parametrize(("own", "to_restart"), [("RUNNING", True), ("PAUSED", False), ("STOPPED", False)])
def test_a_paused_or_stopped_connector_is_not_restarted(own: str, to_restart: bool) -> None:
    assert state("wait.sink", own, "FAILED").to_restart is to_restart


def test_of_a_stack_trace_the_first_line_and_the_innermost_cause_are_told() -> None:
    said = essence(TRACE)
    assert said.startswith("org.apache.kafka.connect.errors.ConnectException: Exiting WorkerSinkTask")
    assert said.endswith("Caused by: org.postgresql.util.PSQLException: Connection to db:5432 refused.")
    assert essence("") == "no reason given"
    assert len(essence("x" * 10_000)) <= 600


def test_of_a_long_line_the_end_is_told_too_where_a_lost_slot_is_named() -> None:
    said = essence(
        "io.debezium.DebeziumException: The connector is trying to read change stream starting at "
        f"PostgresOffsetContext [sourceInfoSchema={'x' * 1000}], but this is no longer available on the server. "
        "Reconfigure the connector to use a snapshot mode when needed.\n\tat io.debezium.Task.run(Task.java:1)\n"
        f"Caused by: org.postgresql.util.PSQLException: {'y' * 1000}: no such slot\n"
    )
    assert said.startswith("io.debezium.DebeziumException: The connector is trying to read")
    assert "but this is no longer available on the server." in said
    assert "Caused by: org.postgresql.util.PSQLException: yyy" in said
    assert said.endswith("yyy: no such slot")
    assert len(said) <= 900


@pytest.mark.parametrize(
    ("found", "severity", "said"),
    [
        (state("s", "RUNNING", "RUNNING", "RUNNING"), Severity.OK, "2 tasks RUNNING at w:8083"),
        (state("s", "RUNNING", "FAILED"), Severity.ERROR, "s task 0: org.apache.kafka"),
        (state("s", "PAUSED", "FAILED"), Severity.ERROR, "s task 0: org.apache.kafka"),
        (state("s", "PAUSED", "PAUSED"), Severity.WARNING, "PUT /connectors/s/resume"),
        (state("s", "RUNNING"), Severity.ERROR, "RUNNING, no task"),
    ],
)
def test_apply_is_content_with_what_runs_or_is_held_on_purpose(
    found: ConnectorState, severity: Severity, said: str
) -> None:
    judged = outcome(found)
    assert (judged.severity, said in str(judged)) == (severity, True), judged


def test_without_names_a_command_is_about_ours_as_far_as_they_are_there() -> None:
    states = {name: state(name, "RUNNING", "RUNNING") for name in ("expired.source", "somebody.elses", "wait.sink")}
    ours = Chosen.of(states, ())
    assert [one.name for one in ours.present] == ["wait.sink", "expired.source"]
    assert ours.missing == ()


def test_what_was_named_and_is_not_there_is_missing() -> None:
    chosen = Chosen.of({"a": state("a", "RUNNING", "RUNNING")}, ["b", "a", "b"])
    assert [one.name for one in chosen.present] == ["a"]
    assert chosen.missing == ("b",)
    assert not is_well(chosen)


def test_the_status_shows_where_each_task_runs_and_why_one_failed() -> None:
    chosen = Chosen(
        (state("wait.sink", "RUNNING", "RUNNING", "FAILED"), state("e", "PAUSED", kind="source")), ("gone",)
    )
    lines = list(as_lines(chosen, {"wait.sink": 7}))
    assert lines[0].split() == ["connector", "type", "task", "state", "worker", "lag"]
    assert lines[2].split() == ["wait.sink", "sink", "RUNNING", "w:8083", "7"]
    assert [line.split() for line in lines[3:5]] == [["0", "RUNNING", "w:8083"], ["1", "FAILED", "w:8083"]]
    assert any(
        line.startswith("failed: wait.sink task 1: ") and "Connection to db:5432 refused" in line for line in lines
    )
    assert lines[-1].startswith("not there: gone")
    as_object = json.loads(as_json(chosen, {"wait.sink": 7}))
    first = as_object["connectors"][0]
    assert (first["failed"], first["running"], first["lag"]) == (True, False, 7)
    assert first["tasks"][1]["trace"] == TRACE
    assert as_object["missing"] == ["gone"]


def test_only_a_failure_or_an_absence_is_no_good_status() -> None:
    assert is_well(Chosen((state("a", "PAUSED"), state("b", "RUNNING", "UNASSIGNED")), ()))
    assert not is_well(Chosen((state("a", "RUNNING", "FAILED"),), ()))


def test_a_watcher_is_not_ready_while_it_watches_over_nothing() -> None:
    running = state("a", "RUNNING", "RUNNING")
    assert Look("no answer").reasons() == ["no answer"]
    assert "no connector to watch" in Look().reasons()[0]
    assert "connector b doesn't exist" in Look(None, (running,), ("b",)).reasons()[0]
    assert Look(None, (state("a", "RUNNING", "FAILED"),)).reasons() == [], "it does its work: it restarts"


def test_a_configuration_is_the_same_whether_the_worker_has_added_the_name_or_not() -> None:
    given = {"connector.class": "x", "topics": "a", "old": "1"}
    assert changed_properties({**given, "name": "n"}, given) == []
    assert changed_properties({**given, "name": "n"}, {"connector.class": "x", "topics": "b", "new": "1"}) == [
        "new",
        "old",
        "topics",
    ]


def test_a_sinks_group_is_connects_own_unless_it_was_given_another() -> None:
    assert sink_group("wait.sink", {}) == "connect-wait.sink"
    assert sink_group("wait.sink", {"consumer.override.group.id": "mine"}) == "mine"


def test_a_removed_source_leaves_a_slot_that_fills_the_disk_and_says_so() -> None:
    assert "slot" not in what_remains({"topics": "a"})
    said = what_remains({"slot.name": "waitreg_expired"})
    assert "select pg_drop_replication_slot('waitreg_expired')" in said
    assert "delete its offsets too" in said
    heading = said.partition('"')[2].partition('"')[0]
    assert f"### {heading}\n" in (ROOT / "connect-configs" / "README.md").read_text("utf-8")


def test_a_removed_source_tells_what_goes_before_a_sweeper_and_a_sink_does_not() -> None:
    assert "Before a sweeper of ours may run" in what_remains(
        {"query": 'select * from "public".expired_tombstone_open'}
    )
    assert "sweeper" not in what_remains({"topics": "a"})


def test_a_connector_that_no_command_looks_at_by_itself_is_pointed_out() -> None:
    def remarked(names: list[str], listed: str) -> list[str]:
        given = load_settings({"connect.connectors": listed}, env={})
        return list(remarks([Connector(name, {}, f"{name}.json") for name in names], given))

    assert remarked(["wait.sink"], "") == []
    assert remarked(["mine"], "mine,wait.sink") == []
    (said,) = remarked(["wait.sink", "mine"], "")
    assert "don't include mine by default: list it in connect.connectors" in said
    (said,) = remarked(["wait.sink", "mine"], "mine")
    assert "don't include wait.sink" in said


def test_sources_are_removed_before_the_sinks_they_rest_on() -> None:
    source = {"table.include.list": "public.expired_outbox"}
    found = exporters_first({"wait.sink": {"topics": "a"}, "gone": None, "s1": source, "other": {}, "s2": source})
    assert [name for name, _ in found] == ["s1", "s2", "wait.sink", "gone", "other"]


def test_a_view_kept_under_another_group_than_the_settings_name_is_pointed_out() -> None:
    mine = Connector("my.sink", {"topics": "a, waits"}, "my.json")
    ours = Connector("wait.sink", {"topics": "waits"}, "wait.sink.debezium.json")
    other = Connector("other.sink", {"topics": "waits.dlq"}, "other.json")
    given = {"wait.topic": "waits", "connect.connectors": "my.sink,wait.sink,other.sink"}
    (said,) = remarks([mine, ours, other], load_settings(given, env={}))
    assert "set sink.connect_group=connect-my.sink" in said
