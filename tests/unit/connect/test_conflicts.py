"""States of connectors are read and judged, and a second connector for the same work is refused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

import pytest

from tests.support.connect_connectors import CONNECTORS, Family, our_connector, own_files
from tests.unit.connect.fake_worker import TRACE, state
from wait_registry.errors import ConfigurationError
from wait_registry.settings.loading import load_settings
from wait_registry.settings.tree import Settings
from waitreg.connect.conflicts import require_no_conflict
from waitreg.connect.connector_file import Connector
from waitreg.connect.roles import sink_group
from waitreg.connect.state import NAMES, ConnectorState, TaskState, choose, essence

FAMILIES: tuple[Family, ...] = get_args(Family)


def settings(**given: str) -> Settings:
    shop = {"postgres.url": "postgresql://waitreg@db/shop", "sink.kind": "connect"}
    return load_settings({**shop, **{name.replace("__", "."): value for name, value in given.items()}}, env={})


def ours(family: Family, given: Settings) -> dict[str, Connector]:
    """Return this project's connectors of a family by name."""
    found = [our_connector(file, given) for role in CONNECTORS for file in own_files(role, family)]
    return {connector.name: connector for connector in found}


def named(connector: Connector, name: str) -> Connector:
    return Connector(name, connector.config, f"{name}.json")


def there(connector: Connector, own: str = "RUNNING", task: str = "RUNNING") -> ConnectorState:
    tasks = (TaskState(0, task, ""),)
    return ConnectorState(connector.name, "sink", own, "", tasks, dict(connector.config))


def require(connectors: Iterable[Connector], *states: ConnectorState) -> None:
    require_no_conflict(list(connectors), {state.name: state for state in states})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("other_family", FAMILIES)
@pytest.mark.parametrize("own", ["RUNNING", "STOPPED"])
def test_a_rival_under_another_name_is_refused(name: str, family: Family, other_family: Family, own: str) -> None:
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
    with pytest.raises(ConfigurationError, match="DELETE /connectors/second"):
        require([first, named(first, "second")])


@pytest.mark.guarantee("P3.20")
@pytest.mark.parametrize("source", FAMILIES)
@pytest.mark.parametrize("sink", FAMILIES)
@pytest.mark.parametrize(("own", "task"), [("RUNNING", "RUNNING"), ("RUNNING", "FAILED"), ("PAUSED", "PAUSED")])
def test_a_new_sink_is_refused_while_a_source_exists(source: Family, sink: Family, own: str, task: str) -> None:
    new = named(ours(sink, settings())["wait.sink"], "my.sink")
    with pytest.raises(
        ConfigurationError, match=r"expired.source exports .* until my.sink, .*DELETE /connectors/expired.source"
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
        ("PAUSED", ("PAUSED", "FAILED"), ["failed"]),
        ("STOPPED", ("FAILED",), ["failed"]),
        ("RUNNING", (), []),
        ("RUNNING", ("RUNNING", "FAILED"), ["failed", "to_restart"]),
        ("FAILED", (), ["failed", "to_restart"]),
        ("RUNNING", ("UNASSIGNED",), []),
        ("RUNNING", ("RESTARTING",), []),
        ("PAUSED", ("PAUSED",), []),
        ("STOPPED", (), []),
    ],
)
def test_tasks_decide_what_runs_failed_and_is_restarted(own: str, tasks: tuple[str, ...], true: list[str]) -> None:
    found = state("wait.sink", own, *tasks)
    assert [name for name in ("runs", "failed", "to_restart") if getattr(found, name)] == true


def test_the_essence_of_a_trace_is_its_first_line_and_innermost_cause() -> None:
    said = essence(TRACE)
    assert said.startswith("org.apache.kafka.connect.errors.ConnectException: Exiting WorkerSinkTask")
    assert said.endswith("Caused by: org.postgresql.util.PSQLException: Connection to db:5432 refused.")
    assert essence("") == "no reason given"


def test_without_names_the_watch_chooses_our_connectors_that_exist() -> None:
    states = {name: state(name, "RUNNING", "RUNNING") for name in ("expired.source", "another", "wait.sink")}
    present, missing = choose(states, ())
    assert ([one.name for one in present], missing) == (["wait.sink", "expired.source"], [])


def test_a_named_connector_that_does_not_exist_is_missing() -> None:
    present, missing = choose({"a": state("a", "RUNNING", "RUNNING")}, ["b", "a", "b"])
    assert ([one.name for one in present], missing) == (["a"], ["b"])


def test_a_sinks_group_is_that_of_connect_unless_overridden() -> None:
    assert sink_group("wait.sink", {}) == "connect-wait.sink"
    assert sink_group("wait.sink", {"consumer.override.group.id": "mine"}) == "mine"
