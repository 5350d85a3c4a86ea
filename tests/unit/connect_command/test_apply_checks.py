"""`apply` refuses two connectors of the same work, and sources that would export before their sinks are ready."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import get_args

import pytest

from wait_registry.cli.connect.caught_up import SinksBehind
from wait_registry.cli.connect.checks import (
    require_no_rivals,
    require_no_source_with_new_sinks,
    require_sinks_at_work,
)
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


def there(connector: Connector, own: str = "RUNNING", task: str = "RUNNING", trace: str = "") -> ConnectorState:
    tasks = (TaskState(0, task, "w", trace),)
    return ConnectorState(connector.name, "sink", own, "w", "", tasks, dict(connector.config))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("other_family", FAMILIES)
@pytest.mark.parametrize("own", ["RUNNING", "STOPPED"])
def test_a_rival_under_another_name_is_refused_and_the_first_is_named(
    name: str, family: Family, other_family: Family, own: str
) -> None:
    first, second = ours(family, settings())[name], named(ours(other_family, settings())[name], "second")
    with pytest.raises(ConfigurationError, match=rf"{name} (writes|exports) .* second would be a second one"):
        require_no_rivals([second], [there(first, own)])


@pytest.mark.parametrize("family", FAMILIES)
def test_our_connectors_are_no_rivals(family: Family) -> None:
    connectors = list(ours(family, settings()).values())
    require_no_rivals(connectors, [])
    require_no_rivals(connectors, map(there, connectors))
    other_family = ours("jdbc" if family == "debezium" else "debezium", settings())
    require_no_rivals(connectors, map(there, other_family.values()))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("elsewhere", [{"postgres__schema": "other"}, {"postgres__url": "postgresql://u@db/other"}])
def test_a_connector_of_other_tables_is_no_rival(name: str, family: Family, elsewhere: dict[str, str]) -> None:
    second = named(ours(family, settings(**elsewhere))[name], "second")
    require_no_rivals([second], [there(ours(family, settings())[name])])


def test_what_counts_is_the_topic_and_the_configuration_that_is_applied() -> None:
    first = ours("debezium", settings())["wait.sink"]
    other_topic = named(ours("debezium", settings(wait__topic="other"))["wait.sink"], "second")
    require_no_rivals([other_topic], [there(first)])
    replaced = Connector("audit", {"connector.class": "x", "topics": "a"}, "audit.json")
    require_no_rivals([first, replaced], [there(named(first, "audit"))])
    with pytest.raises(ConfigurationError, match="waitreg connect remove"):
        require_no_rivals([first, named(first, "second")], [])


@pytest.mark.parametrize("own", ["STOPPED", "PAUSED"])
@pytest.mark.parametrize("applied", [(), ("wait.sink",)])
def test_a_new_source_is_refused_while_a_sink_is_held(own: str, applied: tuple[str, ...]) -> None:
    sink = there(ours("debezium", settings())["wait.sink"], own, own)
    with pytest.raises(SinksBehind, match=f"is {own}.*PUT /connectors/wait.sink/resume.*Then run this again"):
        require_sinks_at_work([sink], settings(), applied)


def test_a_new_source_is_refused_after_a_sink_failed_unless_it_is_applied() -> None:
    sink = there(ours("jdbc", settings())["dead_letter.sink"], "RUNNING", "FAILED", "no such table")
    with pytest.raises(SinksBehind, match=r"dead_letter.sink is FAILED \(.*no such table\): fix that"):
        require_sinks_at_work([sink], settings())
    require_sinks_at_work([sink], settings(), ["dead_letter.sink"])


def test_sinks_that_run_or_start_or_keep_other_tables_block_no_source() -> None:
    own = ours("debezium", settings())
    others = ours("debezium", settings(wait__topic="other", dead_letter__topic="other.dlq"))
    audit = Connector("audit", {"topics": settings().wait.topic}, "audit.json")
    require_sinks_at_work(
        [
            there(own["wait.sink"]),
            there(own["dead_letter.sink"], "RUNNING", "UNASSIGNED"),
            there(others["wait.sink"], "STOPPED", "STOPPED"),
            there(others["dead_letter.sink"], "RUNNING", "FAILED"),
            there(audit, "PAUSED", "PAUSED"),
        ],
        settings(),
    )


@pytest.mark.guarantee("P3.20")
@pytest.mark.parametrize("source", FAMILIES)
@pytest.mark.parametrize("sink", FAMILIES)
@pytest.mark.parametrize(("own", "task"), [("RUNNING", "RUNNING"), ("RUNNING", "FAILED"), ("PAUSED", "PAUSED")])
def test_a_new_sink_is_refused_while_a_source_exists(source: Family, sink: Family, own: str, task: str) -> None:
    at_work = there(ours(source, settings())["expired.source"], own, task)
    new = named(ours(sink, settings())["wait.sink"], "my.sink")
    with pytest.raises(
        ConfigurationError, match=r"expired.source exports .* until my.sink, .*`waitreg connect remove`"
    ):
        require_no_source_with_new_sinks([new], [at_work])


@pytest.mark.parametrize("family", FAMILIES)
def test_an_existing_sink_or_a_stopped_or_other_source_blocks_no_sink(family: Family) -> None:
    own, elsewhere = ours(family, settings()), ours(family, settings(postgres__schema="other"))
    at_work, new = there(own["expired.source"]), own["wait.sink"]
    require_no_source_with_new_sinks([new], [at_work, there(new, "RUNNING", "FAILED")])
    require_no_source_with_new_sinks([new], [there(own["expired.source"], "STOPPED")])
    require_no_source_with_new_sinks([new], [there(elsewhere["expired.source"]), there(own["expired.tombstones"])])
    require_no_source_with_new_sinks([own["expired.tombstones"]], [at_work])
