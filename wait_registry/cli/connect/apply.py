"""`waitreg connect apply`: read the files, refuse what would export twice or too early, and create the sources last."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from wait_registry.cli.check_report import shown
from wait_registry.cli.connect.caught_up import await_connect_sinks, await_spark_sink, table_sinks
from wait_registry.cli.connect.checks import (
    require_no_rivals,
    require_no_source_with_new_sinks,
    require_place,
    require_sinks_at_work,
)
from wait_registry.cli.connect.client_security import with_client_security
from wait_registry.cli.connect.cluster import ConnectCluster, Report, outcome
from wait_registry.cli.connect.connector_file import NAMES, Connector, plain_secrets, read_connector
from wait_registry.cli.connect.postgres_checks import (
    Notice,
    require_no_sink_position,
    require_no_stale_slot,
    require_no_sweeper_at_work,
)
from wait_registry.cli.connect.rest import ConnectRest
from wait_registry.cli.connect.roles import exports, keeps_tables, sink_group, sink_topics
from wait_registry.cli.connect.variables import variable
from wait_registry.diagnosis import Severity
from wait_registry.errors import ConfigurationError
from wait_registry.settings.root import Settings
from wait_registry.settings.sink import SinkKind


def read_connectors(files: Iterable[Path], settings: Settings) -> list[Connector]:
    """Read connectors, fill in their variables, and add the security of their clients.

    Raises:
        ConfigurationError: a file can't be read or filled in, or two have one name.
    """
    found = [read_connector(file, partial(variable, settings=settings)) for file in files]
    names = [connector.name for connector in found]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise ConfigurationError(f"two files have the same name, {', '.join(doubled)}: apply one of them")
    return [with_client_security(connector, settings) for connector in found]


def remarks(connectors: Sequence[Connector], settings: Settings) -> Iterator[str]:
    """Yield a sentence for each thing about these connectors that deserves attention and prevents nothing. Pure."""
    yield from _other_groups(connectors, settings.wait.topic, settings.sink.connect_group)
    yield from plain_secrets(connectors)
    watched = settings.connect.connectors or NAMES
    for connector in connectors:
        if connector.name not in watched:
            yield (
                f"status, watch and remove don't include {connector.name} by default: list it in connect.connectors, "
                "with all others that they should include"
            )


def _other_groups(connectors: Iterable[Connector], wait_topic: str, expected: str) -> Iterator[str]:
    for connector in connectors:
        group = sink_group(connector.name, connector.config)
        if wait_topic in sink_topics(connector.config) and group != expected:
            yield (
                f"{connector.name} reads {wait_topic} as group {group}, but sink.connect_group is {expected}: if it "
                f"keeps the tables, set sink.connect_group={group}, by which doctor and query judge their age"
            )


def apply_connectors(connectors: Sequence[Connector], settings: Settings, rest: ConnectRest, report: Report) -> bool:
    """Create or change connectors, new sources last, and wait until all run.

    Returns:
        Whether each runs, or is held by an operator.

    Raises:
        ConfigurationError: they contradict the settings, other connectors, or a sink or sweeper of ours that has run.
        WorkerUnavailable: no worker answers; try again.
        SinksBehind: a sink has stopped, failed or makes no progress, so that no source is created; try again.
    """
    require_place(connectors, settings)
    notice = _once()
    _require_nothing_of_ours(connectors, settings, notice)
    cluster = ConnectCluster(rest, settings.connect.start_timeout_s, report)
    cluster.require_valid(connectors)
    there = cluster.states().values()
    require_no_rivals(connectors, there)
    require_no_source_with_new_sinks(connectors, there)
    last = cluster.new_exporters(connectors)
    with_connect_sink = settings.sink.kind is SinkKind.CONNECT
    if last:
        require_no_stale_slot(last, settings, notice)
        if with_connect_sink:
            require_sinks_at_work(there, settings, [connector.name for connector in connectors])
    well = _put(cluster, [connector for connector in connectors if connector not in last])
    if not last:
        return well
    if not well:
        report("not created", ", ".join(connector.name for connector in last), "what they depend on doesn't run")
        return False
    if with_connect_sink:
        await_connect_sinks(table_sinks(cluster.states().values(), settings), settings, report)
    else:
        await_spark_sink(settings, report, notice)
    return _put(cluster, last)


def _require_nothing_of_ours(connectors: Sequence[Connector], settings: Settings, notice: Notice) -> None:
    exporting = any(exports(connector.config) for connector in connectors)
    if exporting:
        require_no_sweeper_at_work(settings, notice)
    keeping = any(keeps_tables(connector.config) for connector in connectors)
    if settings.sink.kind is SinkKind.CONNECT and (keeping or exporting):
        require_no_sink_position(settings, notice)


def _put(cluster: ConnectCluster, connectors: Sequence[Connector]) -> bool:
    outcomes = [outcome(state) for state in cluster.put(connectors)] if connectors else []
    for line in outcomes:
        print(shown(line), flush=True)
    return all(line.severity is not Severity.ERROR for line in outcomes)


def _once() -> Notice:
    """Return what prints notices that are no results, each sentence once."""
    printed: set[str] = set()

    def notice(sentence: str) -> None:
        if sentence not in printed:
            printed.add(sentence)
            print(sentence, file=sys.stderr)

    return notice
