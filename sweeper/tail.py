"""The tail of the log: what it says of a registration after the position up to which the view is exact. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import StrEnum

from wait_registry.errors import TransientError

# Longer keys are nobody's id, and holding them would not be bounded by the number of ids.
WAIT_ID_BYTES = 36


class TailTooLong(TransientError):
    """More ids than sweeper.max_tail_records: leave the partition until the sink has caught up."""


class Verdict(StrEnum):
    """What view and tail together say of a due row."""

    OPEN = "open"
    SUPERSEDED = "superseded"
    UNSEEN = "unseen"


class Tail:
    """The last entry of each id in the wait topic from an offset on.

    Together with a view that is exact below ``start`` it is the exact truth of the moment in which it was read: any
    later entry of a row's id supersedes the row, a tombstone because it resolves it, a newer wait because it counts by
    its own expiry. The partition is compacted, so a row whose own wait record should stand in what was read, and
    doesn't, isn't open either: something later has removed it.
    """

    def __init__(self, start: int, max_ids: int, only: Collection[str] | None = None) -> None:
        """Begin at an offset.

        Args:
            start: the view is exact below it.
            max_ids: ids held, at most; this bounds the memory (about 160 bytes each).
            only: the ids that will be asked about, if they are known; others aren't held.

        Raises:
            TailTooLong: there are more of them.
        """
        self.start = start
        self._max_ids = max_ids
        self._only = None if only is None else frozenset(wait_id.encode() for wait_id in only)
        if self._only is not None and len(self._only) > max_ids:
            raise TailTooLong(f"more than {max_ids} rows are due (sweeper.max_tail_records): raise it for this sweep")
        self._last: dict[bytes, int] = {}
        self._finished: frozenset[bytes] = frozenset()

    def add(self, key: bytes | None, offset: int) -> None:
        """Take in a record; call in the order of offsets.

        Raises:
            TailTooLong: there are too many.
        """
        if key is None or len(key) > WAIT_ID_BYTES or key in self._finished:
            return
        if self._only is not None and key not in self._only:
            return
        self._last[key] = offset
        if len(self._last) > self._max_ids:
            raise TailTooLong(
                f"entries of more than {self._max_ids} ids from offset {self.start} on (sweeper.max_tail_records): "
                "the sink is too far behind"
            )

    def ignore(self, wait_ids: Iterable[str]) -> None:
        """Forget ids that are finished with, until the next call: their tombstones are read on but not held."""
        self._finished = frozenset(wait_id.encode() for wait_id in wait_ids)
        for key in self._finished:
            self._last.pop(key, None)

    def begin_again(self) -> Tail:
        """Return an empty tail of the same start, for the same ids."""
        again = Tail(self.start, self._max_ids)
        again._only = self._only
        return again

    def confirm(self, again: Tail, end: int) -> None:
        """Forget what stood below an offset and isn't found there by a later reading: it was being compacted away.

        Args:
            again: read after this one had come to its end, from the same start.
            end: how far it was read.
        """
        gone = [key for key, last in self._last.items() if last < end and again._last.get(key) != last]
        for key in gone:
            del self._last[key]

    def verdict(self, wait_id: str, wait_offset: int) -> Verdict:
        """Judge a row of the view.

        Args:
            wait_id: its id.
            wait_offset: where its wait record stands.
        """
        last = self._last.get(wait_id.encode(), -1)
        if last > wait_offset:
            return Verdict.SUPERSEDED
        if wait_offset >= self.start and last != wait_offset:
            return Verdict.UNSEEN
        return Verdict.OPEN
