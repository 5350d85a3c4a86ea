"""What `waitreg connect apply` refuses: by the settings, the connectors that exist, and what our services have left."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

import psycopg
from psycopg.rows import TupleRow

from sweeper.health import longest_silence_s
from wait_registry.errors import ConfigurationError, WaitRegistryError
from wait_registry.postgres.connection import connect_pooled
from wait_registry.postgres.error_text import error_text
from wait_registry.postgres.queries import Queries
from wait_registry.settings.root import Settings
from wait_registry.settings.sink import SinkKind
from wait_registry.settings.sweeper import SweeperKind
from waitreg.connect.connector_file import Connector
from waitreg.connect.roles import asks_by_id, exports, keeps_tables, registries, works
from waitreg.connect.state import ConnectorState

_QUERIES: Final = Queries("connect")


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


def require_no_conflict(connectors: Collection[Connector], states: Mapping[str, ConnectorState]) -> None:
    """Refuse connectors that would do the work of another one, and new sinks while a source of their registry runs.

    A new sink reads the log from its start, and for hours shows what was settled long ago. A new source waits for it;
    one that runs doesn't. Pure.

    Args:
        connectors: what is to be applied.
        states: all connectors that exist, running or not, by name: one that is stopped may be resumed.

    Raises:
        ConfigurationError: two would do the same work; or a source runs, or would once it is fixed.
    """
    # What is applied replaces the connector of its name.
    configs = {name: state.config for name, state in states.items()}
    configs |= {connector.name: connector.config for connector in connectors}
    for connector in connectors:
        for name, config in configs.items():
            shared = works(connector.config) & works(config)
            if name != connector.name and shared:
                tables = ", ".join(sorted({f"{work.schema}.{work.table}" for work in shared}))
                raise ConfigurationError(
                    f"nothing was changed: {name} has the table {tables} too, and with {connector.name} as a second "
                    "connector settled rows come back or everything is exported twice. Give the file the name "
                    f"{name}, which continues where that is, or `waitreg connect remove {name}` first"
                )
    new = [one for one in connectors if keeps_tables(one.config) and one.name not in states]
    # A paused source keeps its task, which may continue to fill the outbox; a stopped one doesn't.
    for state in (state for state in states.values() if state.state != "STOPPED"):
        for sink in new:
            if registries(state.config, "expired_outbox") & registries(sink.config):
                raise ConfigurationError(
                    f"nothing was changed: {state.name} exports what the tables show, and until {sink.name}, which "
                    "doesn't exist yet, has read the log, that is what was settled long ago. `waitreg connect remove` "
                    "the sources, then apply sinks and sources together: the sources are created once the sinks have "
                    "read the log"
                )


class OurServices:
    """What our sink and our sweeper have left in Postgres.

    If Postgres is unavailable or we may not read the tables, nothing is refused. The first time, a sentence says so.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._reported = False

    def require_no_sink_position(self) -> None:
        """Refuse connectors of tables that a Connect sink keeps while they have the position of a sink of ours.

        A sweeper or a sink of ours that starts later, and the outbox at once, would take the Connect sink's rows for
        complete up to there, and export what was settled long ago.

        Raises:
            ConfigurationError: there is such a position.
        """
        for (ago_s,) in self._rows("position_age"):
            if ago_s is not None:
                raise ConfigurationError(
                    f"sink_progress has the position of a sink of ours on {self._settings.wait.topic}, written "
                    f"{ago_s:.0f} s ago. A Kafka Connect sink doesn't move it, so settled registrations would be "
                    "exported. Stop `waitreg sink` and all Kafka Connect sinks, run `waitreg rebuild` with "
                    "sink.kind=connect, then run this again"
                )

    def require_no_sweeper_at_work(self) -> None:
        """Refuse to continue if a sweeper has swept lately, whatever these settings say.

        Raises:
            ConfigurationError: one has.
        """
        silent_most_s = longest_silence_s(self._settings.sweeper.interval_s)
        for (ago_s,) in self._rows("sweep_age"):
            if ago_s is not None and ago_s <= silent_most_s:
                raise ConfigurationError(
                    f"a sweeper of ours swept {ago_s:.0f} s ago. Together with a source it would export each expired "
                    f"registration twice: stop the sweeper, and run this again once {silent_most_s:.0f} s have passed"
                )

    def require_no_stale_slot(self, new: Iterable[Connector]) -> None:
        """Refuse new sources whose slot is older than a sweep: they would send again what the sweep exported.

        A row that was in the outbox and wasn't sent when the source was removed is exported by the sweeper, and the
        source still reads it from the slot. A source without a slot starts with what is open.

        Args:
            new: sources that don't exist yet.

        Raises:
            ConfigurationError: there is such a slot.
        """
        slots = [connector.config["slot.name"] for connector in new if "slot.name" in connector.config]
        stale = [str(name) for (name,) in (self._rows("stale_slots", slots=slots) if slots else ())]
        if stale:
            drop = "; ".join(f"select pg_drop_replication_slot('{name}')" for name in stale)
            raise ConfigurationError(
                f"nothing was changed: a sweeper of ours has exported rows that the replication slot "
                f"{', '.join(stale)} still holds, and the source would export them again. Drop the slot: {drop}; run "
                "this again.\nIf a connector then fails because its slot is gone, its offsets are still known: follow "
                'steps 1, 3 and 4 of "When a source has lost its place" (connect-configs/README.md)'
            )

    def sink_positions(self) -> dict[int, int]:
        """Return the position of our sink by partition; empty if it has recorded none."""
        return dict(self._rows("positions"))

    def _rows(self, query: str, **question: Any) -> list[TupleRow]:
        postgres, question = self._settings.postgres, {"topic": self._settings.wait.topic, **question}
        try:
            with connect_pooled(postgres, application_name="waitreg connect") as connection:
                return connection.execute(_QUERIES[query], question).fetchall()
        except (WaitRegistryError, psycopg.Error) as error:
            if not self._reported:
                print(
                    f"Postgres can't be asked ({error_text(error)}), so this doesn't check whether a sink or a sweeper "
                    "of ours runs or has left anything behind. The steps for a change from them are in "
                    "connect-configs/README.md",
                    file=sys.stderr,
                )
            self._reported = True
            return []
