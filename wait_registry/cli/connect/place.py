"""In whose place a connector is: it keeps the view as a sink of ours would, or exports as our sweeper would.

A connector is known by the tables that it works on and the transforms that fill them, not by its name or file: a copy
with changes is one of them, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from wait_registry.cli.connect.connector_file import Connector
from wait_registry.errors import ConfigurationError
from wait_registry.settings.root import Settings
from wait_registry.settings.sink import SinkKind
from wait_registry.settings.sweeper import SweeperKind

_ROWS: Final = ("io.waitreg.connect.WaitRecordToRow", "io.waitreg.connect.DeadLetterToRow")
_OUTBOX: Final = ("expired_outbox", "expired_tombstone")


def keeps_view(config: Mapping[str, str]) -> bool:
    """Tell whether a connector writes the tables that our sink would write. Pure."""
    return any(value in _ROWS for value in config.values())


def exports(config: Mapping[str, str]) -> bool:
    """Tell whether a connector exports from the outbox what our sweeper would export. Pure."""
    return any(table in value for value in config.values() for table in _OUTBOX)


def exporters_first(
    configs: Mapping[str, Mapping[str, str] | None],
) -> list[tuple[str, Mapping[str, str] | None]]:
    """Return connectors' names and configurations (None: not there), those that export first, else in order. Pure."""
    return sorted(configs.items(), key=lambda named: named[1] is None or not exports(named[1]))


def asks_by_id(config: Mapping[str, str]) -> bool:
    """Tell whether a source asks for rows with an id above the last one, as those of the JDBC family do. Pure."""
    return "query" in config


def require_place(connectors: Iterable[Connector], settings: Settings) -> None:
    """Refuse connectors in a place that the settings give to another. Pure.

    Raises:
        ConfigurationError: our sink keeps the view, or our sweeper exports; or a source would pass over rows.
    """
    for connector in connectors:
        if keeps_view(connector.config):
            _require_no_other_sink(connector, settings)
        if exports(connector.config):
            _require_no_sweeper(connector, settings)
            _require_steady_view(connector, settings)


def _require_no_other_sink(connector: Connector, settings: Settings) -> None:
    # Beside ours it would bring back rows that ours has deleted; and the sweeper would trust a position nobody moves.
    if settings.sink.kind is not SinkKind.CONNECT:
        raise ConfigurationError(
            f"sink.kind is {settings.sink.kind.value}: one sink keeps the view, and {connector.name} would be a second "
            "one. Stop `waitreg sink`, then set sink.kind=connect here, for the sweeper and for everything else that "
            "reads these settings"
        )


def _require_no_sweeper(connector: Connector, settings: Settings) -> None:
    if settings.sweeper.kind is not SweeperKind.CONNECT:
        raise ConfigurationError(
            f"sweeper.kind is {settings.sweeper.kind.value}: one exports what expires, and beside `waitreg sweeper` "
            f"{connector.name} would export everything twice. Stop `waitreg sweeper`, then set sweeper.kind=connect "
            "here and for everything else that reads these settings"
        )


def _require_steady_view(connector: Connector, settings: Settings) -> None:
    # A Connect sink that reads a stretch of the log again shows an older state of a row for a moment. Whoever asks by
    # id in that moment doesn't see the row's newer registration, and never asks for it again.
    if settings.sink.kind is SinkKind.CONNECT and asks_by_id(connector.config):
        raise ConfigurationError(
            f"{connector.name} asks for rows by their id, and beside a Kafka Connect sink (sink.kind=connect) a row "
            "may be hidden for a moment: it would be passed over for good. Use `--source debezium`, which reads every "
            "row of the outbox, or keep the view with `waitreg sink`"
        )
