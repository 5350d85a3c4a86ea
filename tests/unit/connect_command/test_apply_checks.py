"""`apply` refuses two connectors of the same work, and new sinks while a source exports."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import get_args

import pytest

from wait_registry.cli.connect.checks import require_no_conflict
from wait_registry.cli.connect.connector_file import CONNECTORS, NAMES, Connector, Family, own_files, read_connector
from wait_registry.cli.connect.state import ConnectorState, TaskState
from wait_registry.cli.connect.variables import variable
from wait_registry.errors import ConfigurationError
from wait_registry.settings.loading import load_settings
from wait_registry.settings.root import Settings

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
