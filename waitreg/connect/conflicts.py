"""Connectors that must not be created: by the settings, and by the connectors that exist. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from wait_registry.errors import ConfigurationError
from wait_registry.settings.sink import SinkKind
from wait_registry.settings.sweeper import SweeperKind
from wait_registry.settings.tree import Settings
from waitreg.connect.connector_file import Connector
from waitreg.connect.roles import asks_by_id, exports, keeps_tables, registries, works
from waitreg.connect.state import ConnectorState


def require_place(connectors: Iterable[Connector], settings: Settings) -> None:
    """Refuse connectors for work that the settings give to our sink or sweeper.

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
                "hidden for a moment, and would never be exported: use expired.source.debezium, which reads every row "
                "of the outbox, or keep the tables with `waitreg sink`"
            )


def require_no_conflict(connectors: Collection[Connector], states: Mapping[str, ConnectorState]) -> None:
    """Refuse connectors that would do the work of another one, and new sinks while a source of their registry runs.

    A new sink reads the log from its start, and for hours shows what was settled long ago. A new source waits for it;
    one that runs doesn't.

    Args:
        connectors: what is to be created or changed.
        states: all connectors that exist, running or not, by name: one that is stopped may be resumed.

    Raises:
        ConfigurationError: two would do the same work; or a source runs, or would once it is fixed.
    """
    # What is created replaces the connector of its name.
    configs = {name: state.config for name, state in states.items()}
    configs |= {connector.name: connector.config for connector in connectors}
    for connector in connectors:
        for name, config in configs.items():
            shared = works(connector.config) & works(config)
            if name != connector.name and shared:
                tables = ", ".join(sorted({f"{work.schema}.{work.table}" for work in shared}))
                raise ConfigurationError(
                    f"{name} has the table {tables} too, and with {connector.name} as a second connector settled rows "
                    f"come back or everything is exported twice. Give the file the name {name}, which continues where "
                    f"that is, or delete {name} first (DELETE /connectors/{name} of the REST API)"
                )
    new = [one for one in connectors if keeps_tables(one.config) and one.name not in states]
    # A paused source keeps its task, which may continue to fill the outbox; a stopped one doesn't.
    for state in (state for state in states.values() if state.state != "STOPPED"):
        for sink in new:
            if registries(state.config, "expired_outbox") & registries(sink.config):
                raise ConfigurationError(
                    f"{state.name} exports what the tables show, and until {sink.name}, which doesn't exist yet, has "
                    "read the log, that is what was settled long ago. Delete the sources (DELETE "
                    f"/connectors/{state.name} of the REST API), create the sinks, and check the sources again"
                )
