"""A wait topic that a sink reads, and whether Postgres shows what it leaves open."""

from __future__ import annotations

from tests.integration.sink.wait_topic import WaitTopic, new_id, tombstone, wait_record
from tests.support.database import Database
from tests.support.topics import Topics
from tests.support.waiting import PATIENCE_S, wait_until
from wait_registry.settings.root import Settings


class SinksLog:
    """Registers and resolves records in partition 0, a few each time, and compares the view with that."""

    def __init__(self, settings: Settings, topics: Topics, database: Database) -> None:
        self._settings = settings
        self._database = database
        self._log = WaitTopic(topics, settings.wait.topic)

    def go_on(self) -> None:
        """Resolve half of what is open, and register some more."""
        ended = list(self._log.rows)[::2]
        begun = [wait_record(new_id(), 0) for _ in range(6)]
        self._log.write(*[tombstone(wait_id, 0) for wait_id in ended], *begun)

    def is_shown(self) -> bool:
        """Return whether Postgres shows exactly what the log leaves open."""
        query = "select wait_expiration_uuid, wait_partition, wait_offset from wait"
        rows = self._database.rows(self._settings, query)
        return {wait_id: (partition, offset) for wait_id, partition, offset in rows} == self._log.rows

    def wait_shown(self, when: str) -> None:
        """Wait until it does, and make sure that no tombstone has been applied twice."""
        wait_until(self.is_shown, 2 * PATIENCE_S, f"the exact view {when}")
        assert self._database.rows(self._settings, "select * from late_outcome") == [], when

    def goes_on_and_is_shown(self, when: str) -> None:
        """Write and wait."""
        self.go_on()
        self.wait_shown(when)
