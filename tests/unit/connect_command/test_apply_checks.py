"""States of connectors are read and judged, and `apply` refuses two of the same work."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import get_args

import pytest

from tests.evidence import ROOT
from tests.unit.connect_command.fake_worker import TRACE, state
from wait_registry.diagnosis import Severity
from wait_registry.errors import ConfigurationError
from wait_registry.settings.loading import load_settings
from wait_registry.settings.root import Settings
from waitreg.connect.checks import require_no_conflict
from waitreg.connect.cluster import changed_properties, outcome
from waitreg.connect.connector_file import CONNECTORS, NAMES, Connector, Family, own_files, read_connector
from waitreg.connect.roles import exporters_first, sink_group, what_remains
from waitreg.connect.state import ConnectorState, TaskState, as_json, as_lines, choose, essence
from waitreg.connect.variables import variable

FAMILIES: tuple[Family, ...] = get_args(Family)


def settings(**given: str) -> Settings:
    shop = {"postgres.url": "postgresql://waitreg@db/shop", "sink.kind": "connect"}
    return load_settings({**shop, **{name.replace("__", "."): value for name, value in given.items()}}, env={})


def ours(family: Family, given: Settings) -> dict[str, Connector]:
    """Return this project's connectors of a family by name."""
    files: list[Path] = [file for role in CONNECTORS for file in own_files(role, family)]
    found = [read_connector(file, partial(variable, settings=given)) for file in files]
    return {connector.name: connector for connector in found}


def named(connector: Connector, name: str) -> Connector:
    return Connector(name, connector.config, f"{name}.json")


def there(connector: Connector, own: str = "RUNNING", task: str = "RUNNING") -> ConnectorState:
    tasks = (TaskState(0, task, "w", ""),)
    return ConnectorState(connector.name, "sink", own, "w", "", tasks, dict(connector.config))


def require(connectors: Iterable[Connector], *states: ConnectorState) -> None:
    require_no_conflict(list(connectors), {state.name: state for state in states})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("other_family", FAMILIES)
@pytest.mark.parametrize("own", ["RUNNING", "STOPPED"])
def test_a_rival_under_another_name_is_refused_and_the_first_is_named(
    name: str, family: Family, other_family: Family, own: str
) -> None:
    first, second = ours(family, settings())[name], named(ours(other_family, settings())[name], "second")
    with pytest.raises(ConfigurationError, match=rf"{name} has the table .* with second as a second connector"):
        require([second], there(first, own))


@pytest.mark.parametrize("family", FAMILIES)
def test_our_connectors_are_no_rivals(family: Family) -> None:
    connectors = ours(family, settings()).values()
    require(connectors)
    require(connectors, *map(there, connectors))
    other_family = ours("jdbc" if family == "debezium" else "debezium", settings())
    require(connectors, *map(there, other_family.values()))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("elsewhere", [{"postgres__schema": "other"}, {"postgres__url": "postgresql://u@db/other"}])
def test_a_connector_of_other_tables_is_no_rival(name: str, family: Family, elsewhere: dict[str, str]) -> None:
    second = named(ours(family, settings(**elsewhere))[name], "second")
    require([second], there(ours(family, settings())[name]))


def test_what_counts_is_the_topic_and_the_configuration_that_is_applied() -> None:
    first = ours("debezium", settings())["wait.sink"]
    other_topic = named(ours("debezium", settings(wait__topic="other"))["wait.sink"], "second")
    require([other_topic], there(first))
    replaced = Connector("audit", {"connector.class": "x", "topics": "a"}, "audit.json")
    require([first, replaced], there(named(first, "audit")))
    with pytest.raises(ConfigurationError, match="waitreg connect remove"):
        require([first, named(first, "second")])


@pytest.mark.guarantee("P3.20")
@pytest.mark.parametrize("source", FAMILIES)
@pytest.mark.parametrize("sink", FAMILIES)
@pytest.mark.parametrize(("own", "task"), [("RUNNING", "RUNNING"), ("RUNNING", "FAILED"), ("PAUSED", "PAUSED")])
def test_a_new_sink_is_refused_while_a_source_exists(source: Family, sink: Family, own: str, task: str) -> None:
    new = named(ours(sink, settings())["wait.sink"], "my.sink")
    with pytest.raises(
        ConfigurationError, match=r"expired.source exports .* until my.sink, .*`waitreg connect remove`"
    ):
        require([new], there(ours(source, settings())["expired.source"], own, task))


@pytest.mark.parametrize("family", FAMILIES)
def test_an_existing_sink_or_a_stopped_or_other_source_blocks_no_sink(family: Family) -> None:
    own, elsewhere = ours(family, settings()), ours(family, settings(postgres__schema="other"))
    at_work, new = there(own["expired.source"]), own["wait.sink"]
    require([new], at_work, there(new, "RUNNING", "FAILED"))
    require([new], there(own["expired.source"], "STOPPED"))
    require([new], there(elsewhere["expired.source"]), there(own["expired.tombstones"]))
    require([own["expired.tombstones"]], at_work)


@pytest.mark.parametrize(
    ("own", "tasks", "true"),
    [
        ("RUNNING", ("RUNNING", "RUNNING"), ["runs"]),
        ("PAUSED", ("PAUSED", "FAILED"), ["failed", "held"]),
        ("STOPPED", ("FAILED",), ["failed", "held"]),
        ("RUNNING", (), []),
        ("RUNNING", ("RUNNING", "FAILED"), ["failed", "to_restart"]),
        ("FAILED", (), ["failed", "to_restart"]),
        ("RUNNING", ("UNASSIGNED",), []),
        ("RUNNING", ("RESTARTING",), []),
        ("PAUSED", ("PAUSED",), ["held"]),
        ("STOPPED", (), ["held"]),
    ],
)
def test_tasks_decide_what_runs_failed_is_held_and_is_restarted(
    own: str, tasks: tuple[str, ...], true: list[str]
) -> None:
    found = state("wait.sink", own, *tasks)
    assert [name for name in ("runs", "failed", "held", "to_restart") if getattr(found, name)] == true


def test_the_essence_of_a_trace_is_its_first_line_and_innermost_cause() -> None:
    said = essence(TRACE)
    assert said.startswith("org.apache.kafka.connect.errors.ConnectException: Exiting WorkerSinkTask")
    assert said.endswith("Caused by: org.postgresql.util.PSQLException: Connection to db:5432 refused.")
    assert essence("") == "no reason given"
    assert len(essence("x" * 10_000)) <= 600


def test_the_essence_keeps_both_ends_of_a_long_line() -> None:
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
def test_apply_accepts_what_runs_or_an_operator_holds(found: ConnectorState, severity: Severity, said: str) -> None:
    judged = outcome(found)
    assert (judged.severity, said in str(judged)) == (severity, True), judged


def test_without_names_a_command_chooses_our_connectors_that_exist() -> None:
    states = {name: state(name, "RUNNING", "RUNNING") for name in ("expired.source", "another", "wait.sink")}
    present, missing = choose(states, ())
    assert ([one.name for one in present], missing) == (["wait.sink", "expired.source"], [])


def test_a_named_connector_that_does_not_exist_is_missing() -> None:
    present, missing = choose({"a": state("a", "RUNNING", "RUNNING")}, ["b", "a", "b"])
    assert ([one.name for one in present], missing) == (["a"], ["b"])


def test_the_status_shows_each_task_and_each_failure() -> None:
    present = [state("wait.sink", "RUNNING", "RUNNING", "FAILED"), state("e", "PAUSED", kind="source")]
    lines = list(as_lines(present, ["gone"], {"wait.sink": 7}))
    assert lines[0].split() == ["connector", "type", "task", "state", "worker", "lag"]
    assert lines[2].split() == ["wait.sink", "sink", "RUNNING", "w:8083", "7"]
    assert [line.split() for line in lines[3:5]] == [["0", "RUNNING", "w:8083"], ["1", "FAILED", "w:8083"]]
    assert any(
        line.startswith("failed: wait.sink task 1: ") and "Connection to db:5432 refused" in line for line in lines
    )
    assert lines[-1].startswith("not there: gone")
    as_object = json.loads(as_json(present, ["gone"], {"wait.sink": 7}))
    first = as_object["connectors"][0]
    assert (first["failed"], first["running"], first["lag"]) == (True, False, 7)
    assert first["tasks"][1]["trace"] == TRACE
    assert as_object["missing"] == ["gone"]


def test_changed_properties_omit_the_name_that_the_worker_adds() -> None:
    given = {"connector.class": "x", "topics": "a", "old": "1"}
    assert changed_properties({**given, "name": "n"}, given) == []
    others = {"connector.class": "x", "topics": "b", "new": "1"}
    assert changed_properties({**given, "name": "n"}, others) == ["new", "old", "topics"]


def test_a_sinks_group_is_that_of_connect_unless_overridden() -> None:
    assert sink_group("wait.sink", {}) == "connect-wait.sink"
    assert sink_group("wait.sink", {"consumer.override.group.id": "mine"}) == "mine"


def test_removing_a_source_names_its_slot_and_the_steps_before_a_sweeper() -> None:
    assert not any(word in what_remains({"topics": "a"}) for word in ("slot", "sweeper"))
    said = what_remains({"slot.name": "waitreg_expired"})
    assert "select pg_drop_replication_slot('waitreg_expired')" in said
    assert "delete its offsets too" in said
    heading = said.partition('"')[2].partition('"')[0]
    assert f"### {heading}\n" in (ROOT / "connect-configs" / "README.md").read_text("utf-8")
    query = 'select * from "public".expired_tombstone_open'
    assert "Before a sweeper of ours may run" in what_remains({"query": query})


def test_sources_are_removed_before_their_sinks() -> None:
    source = {"table.include.list": "public.expired_outbox"}
    found = exporters_first({"wait.sink": {"topics": "a"}, "gone": {}, "s1": source, "other": {}, "s2": source})
    assert found == ["s1", "s2", "wait.sink", "gone", "other"]
