"""What `waitreg connect apply` refuses by the settings and by the connectors that exist."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from wait_registry.cli.connect.caught_up import SinksBehind
from wait_registry.cli.connect.connector_file import Connector
from wait_registry.cli.connect.roles import asks_by_id, exports, keeps_tables, registries, sink_topics, works
from wait_registry.cli.connect.state import ConnectorState
from wait_registry.errors import ConfigurationError
from wait_registry.kafka.topic_specs import dead_letter_topics
from wait_registry.settings.root import Settings
from wait_registry.settings.sink import SinkKind
from wait_registry.settings.sweeper import SweeperKind


def require_place(connectors: Iterable[Connector], settings: Settings) -> None:
    """Refuse connectors for work that the settings give to our sink or sweeper. Pure.

    Raises:
        ConfigurationError: our sink keeps the tables, or our sweeper exports; or a source would skip rows.
    """
    by_connect = settings.sink.kind is SinkKind.CONNECT
    for connector in connectors:
        name = connector.name
        # With `waitreg sink` it would bring back deleted rows, and the sweeper would trust a position that stays.
        if keeps_tables(connector.config) and not by_connect:
            raise ConfigurationError(
                f"sink.kind is {settings.sink.kind.value}: one sink keeps the tables, and {name} would be a second "
                "one. Stop `waitreg sink`, then set sink.kind=connect for this and for all services"
            )
        if exports(connector.config) and settings.sweeper.kind is not SweeperKind.CONNECT:
            raise ConfigurationError(
                f"sweeper.kind is {settings.sweeper.kind.value}: one service exports expired registrations, and "
                f"alongside `waitreg sweeper` {name} would export everything twice. Stop `waitreg sweeper`, then set "
                "sweeper.kind=connect for this and for all services"
            )
        # A Connect sink that reads a part of the log again shows an older state of a row for a moment. A source that
        # asks by ID in that moment doesn't see the row's newer registration, and never asks for it again.
        if exports(connector.config) and by_connect and asks_by_id(connector.config):
            raise ConfigurationError(
                f"{name} asks for rows by their ID. Alongside a Kafka Connect sink (sink.kind=connect) a row may be "
                "hidden for a moment, and would never be exported: use `--source debezium`, which reads every row of "
                "the outbox, or keep the tables with `waitreg sink`"
            )


def require_no_rivals(connectors: Iterable[Connector], states: Iterable[ConnectorState]) -> None:
    """Refuse connectors that would do the same work as one with another name. Pure.

    Args:
        connectors: what is to be applied.
        states: all connectors that exist, running or not: one that is stopped may be resumed.

    Raises:
        ConfigurationError: two would do the same work.
    """
    wanted = list(connectors)
    there = {state.name: works(state.config) for state in states}
    # What is applied replaces the connector of its name.
    there |= {connector.name: works(connector.config) for connector in wanted}
    for connector in wanted:
        for name, done in there.items():
            shared = works(connector.config) & done
            if name != connector.name and shared:
                raise ConfigurationError(
                    f"nothing was changed: {name} {min(work.what for work in shared)}, and {connector.name} would be a "
                    "second one that does, so that settled rows come back or everything is exported twice. Give the "
                    f"file the name {name}, which continues where that is, or `waitreg connect remove {name}` first"
                )


def require_no_source_with_new_sinks(connectors: Iterable[Connector], states: Iterable[ConnectorState]) -> None:
    """Refuse sinks that don't exist yet while a source of their registry runs.

    A new sink reads the log from its start, and for hours shows what was settled long ago. A new source waits for it;
    one that runs doesn't.

    Args:
        connectors: what is to be applied.
        states: all connectors that exist.

    Raises:
        ConfigurationError: a source runs, or would once it is fixed.
    """
    there = list(states)
    names = {state.name for state in there}
    new = [one for one in connectors if keeps_tables(one.config) and one.name not in names]
    # A paused source keeps its task, which may continue to fill the outbox; a stopped one doesn't.
    for state in (state for state in there if state.state != "STOPPED"):
        read = registries(state.config, "expired_outbox")
        for sink in new:
            if read & registries(sink.config):
                raise ConfigurationError(
                    f"nothing was changed: {state.name} exports what the tables show, and until {sink.name}, which "
                    "doesn't exist yet, has read the log, that is what was settled long ago. `waitreg connect remove` "
                    "the sources, then apply sinks and sources together: the sources are created once the sinks have "
                    "read the log"
                )


def require_sinks_at_work(states: Iterable[ConnectorState], settings: Settings, applied: Collection[str] = ()) -> None:
    """Refuse a new source while sinks of its tables have stopped or failed.

    Args:
        states: all connectors that exist.
        settings: which topics the tables have; sinks of others don't matter.
        applied: names of those that are applied now, which restarts them if they have failed.

    Raises:
        SinksBehind: one is held or has failed; the message says how to continue.
    """
    copied = {settings.wait.topic, *dead_letter_topics(settings, "sink")}
    refused = [
        f"{state.name} is {_why_stopped(state)}"
        for state in states
        if keeps_tables(state.config) and copied & set(sink_topics(state.config))
        if state.held or (state.failed and state.name not in applied)
    ]
    if refused:
        raise SinksBehind(
            "nothing was changed: no source is created before its sinks have read the log, or settled registrations "
            f"would be exported. {' '.join(refused)} Then run this again"
        )


def _why_stopped(state: ConnectorState) -> str:
    path = f"/connectors/{state.name}"
    if state.held:
        return f"{state.state}: resume it with PUT {path}/resume of the REST API."
    restart = f"POST {path}/restart?includeTasks=true&onlyFailed=true"
    return f"FAILED ({'; '.join(state.failures())}): fix that, and apply its file again or {restart}."
