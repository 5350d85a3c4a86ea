"""What Postgres should show: the log as far as the sink has come."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from tests.chaos.checker.ledger import Ledger
from tests.chaos.history.entries import Place, Republished, WaitEntry
from tests.chaos.history.look import Partition
from tests.chaos.history.where import redelivery_topics
from wait_registry.demo.manifest import Coordinates


class Shown:
    """The rows that each table should have, up to `sink_progress`: that this is behind is one breach, not many."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        history = ledger.history
        self.positions: Mapping[Partition, int] = {
            (row.topic, row.partition): row.next_offset for row in history.progress_rows or ()
        }
        # Redelivery topics are the processors' alone.
        again = redelivery_topics(sorted({record.topic for record in history.published}), history.group)
        self.ends: Mapping[Partition, int] = {
            place: end for place, end in history.ends.items() if place[0] not in again
        }

    @cached_property
    def waits(self) -> Mapping[str, WaitEntry]:
        """Registrations that stand at the sink's position, by id."""
        found: dict[str, WaitEntry] = {}
        for (wait_id, partition), entries in self._ledger.entries_of.items():
            position = self._position(partition)
            last = next((entry for entry in reversed(entries) if entry.offset < position), None)
            if last is not None and last.registration is not None:
                found[wait_id] = last
        return found

    @cached_property
    def letters(self) -> Mapping[Coordinates, Republished]:
        """Every committed record of the dead letter topics, by its place."""
        return {
            letter.place: letter
            for letter in self._ledger.history.dead_letters
            if letter.committed and letter.offset < self.positions.get((letter.topic, letter.partition), 0)
        }

    @cached_property
    def unreadable(self) -> Mapping[Place, WaitEntry]:
        """What can't be read of the wait topic."""
        return {
            entry.place: entry
            for entry in self._ledger.log
            if entry.unreadable and entry.offset < self._position(entry.partition)
        }

    def is_behind(self, entry: WaitEntry) -> bool:
        """Return whether the sink has come past an entry of the wait topic."""
        return entry.offset < self._position(entry.partition)

    def must_be_quarantined(self, entry: WaitEntry) -> bool:
        """Return whether nothing later of its key can have spared the sink the reading."""
        later = self._ledger.entries_of.get((entry.wait_id, entry.partition), ())
        return not later or later[-1].offset < entry.offset

    def _position(self, partition: int) -> int:
        return self.positions.get((self._ledger.history.wait_topic, partition), 0)
