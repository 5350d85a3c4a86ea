"""A wait topic that a sink reads, and whether Postgres shows what it leaves open."""

from __future__ import annotations

from tests.integration.sink.wait_topic import WaitTopic, new_id, rows_of, tombstone, wait_record
from tests.support.database import Database
from tests.support.topics import Topics
from tests.support.waiting import PATIENCE_S, wait_until
from wait_registry.settings.root import Settings


class SinksLog:
    """Registers and resolves records in partition 0, a few each time, and compares the tables with that."""

    def __init__(self, settings: Settings, topics: Topics, database: Database) -> None:
        self._settings = settings
        self._database = database
        self._log = WaitTopic(topics, settings.wait.topic)

    def change(self) -> None:
        """Resolve half of what is open, and register some more."""
        ended = list(self._log.rows)[::2]
        self._log.write(*[tombstone(wait_id, 0) for wait_id in ended], *[wait_record(new_id(), 0) for _ in range(6)])

    def wait_exact(self, when: str) -> None:
        """Wait until Postgres shows exactly what is open; no tombstone may have been applied twice."""
        shown = lambda: rows_of(self._database, self._settings) == self._log.rows  # noqa: E731
        wait_until(shown, 2 * PATIENCE_S, f"the exact rows {when}")
        assert self._database.rows(self._settings, "select * from late_outcome") == [], when

    def change_and_wait(self, when: str) -> None:
        """Write and wait."""
        self.change()
        self.wait_exact(when)
