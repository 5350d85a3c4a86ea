"""What our sink and our sweeper have left in Postgres, and connectors that must not follow them."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, Final

import psycopg
from psycopg.rows import TupleRow

from sweeper.health import longest_silence_s
from wait_registry.errors import ConfigurationError, WaitRegistryError
from wait_registry.postgres.connection import connect_pooled
from wait_registry.postgres.errors import error_text
from wait_registry.postgres.queries import Queries
from wait_registry.settings.tree import Settings
from waitreg.connect.connector_file import Connector

_QUERIES: Final = Queries("connect")


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
                f"a sweeper of ours has exported rows that the replication slot "
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
