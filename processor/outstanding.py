"""What has been consumed and has no outcome yet."""

from __future__ import annotations

from processor.entry import Entry, EntryState


class Outstanding:
    """Counts records and bytes in look-ahead, and how many have finished since the start."""

    __slots__ = ("finished", "records", "size")

    def __init__(self) -> None:
        self.records = 0
        self.size = 0
        self.finished = 0

    def add(self, records: int, size: int) -> None:
        """Count records just consumed, with ``size`` bytes together."""
        self.records += records
        self.size += size

    def finish(self, entry: Entry) -> None:
        """Take a record out that has its outcome; does nothing for one that is out already."""
        if self._take_out(entry, EntryState.FINISHED):
            self.finished += 1

    def drop(self, entry: Entry) -> None:
        """Take a record out that the partition's next owner will handle; does nothing for one that is out already."""
        self._take_out(entry, EntryState.DROPPED)

    def _take_out(self, entry: Entry, state: EntryState) -> bool:
        if entry.state is EntryState.FINISHED or entry.state is EntryState.DROPPED:
            return False
        entry.state = state
        self.records -= 1
        self.size -= entry.size
        return True
