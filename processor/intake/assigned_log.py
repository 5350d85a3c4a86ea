"""What the consumer knows of the log of an assigned partition."""

from __future__ import annotations

from wait_registry.records.topics import TopicPartition

UNKNOWN_OFFSET = -1


class AssignedLog:
    """One assignment of one partition; the next assignment of the same partition is another object.

    Offsets, ``UNKNOWN_OFFSET`` before the first: ``position`` below which every record was polled, which is behind the
    transaction markers where the end of the log was reached; ``low_watermark`` and ``high_watermark`` are the start and
    end of the log; ``due_end`` below which the records of a delayed partition are due. ``emptied_id`` is the topic's ID
    if what is committed of it was handled by this group, and None otherwise.
    """

    __slots__ = ("due_end", "emptied_id", "high_watermark", "low_watermark", "partition", "position", "topic")

    def __init__(self, place: TopicPartition, start: int | None, emptied_id: str | None = None) -> None:
        self.topic, self.partition = place
        self.position = UNKNOWN_OFFSET if start is None else start
        self.emptied_id = emptied_id
        self.low_watermark = UNKNOWN_OFFSET
        self.high_watermark = UNKNOWN_OFFSET
        self.due_end = UNKNOWN_OFFSET

    def __repr__(self) -> str:
        return f"{self.topic}[{self.partition}]"

    @property
    def place(self) -> TopicPartition:
        """Topic and number."""
        return self.topic, self.partition

    @property
    def lag(self) -> int | None:
        """How many records aren't polled yet; None while the end of the log is unknown."""
        return self._left(self.high_watermark)

    def due_lag(self, delayed: bool) -> int | None:
        """Return how many of them are due; None while that is unknown. If the topic has no delay, all are."""
        return self._left(self.due_end) if delayed else self.lag

    def _left(self, end: int) -> int | None:
        # Without a committed offset the first record is the log's first.
        position = self.low_watermark if self.position == UNKNOWN_OFFSET else self.position
        return None if UNKNOWN_OFFSET in (position, end) else max(0, end - position)

    def polled_below(self, offset: int) -> None:
        """Note that every record below an offset was polled."""
        self.position = offset

    def due_below(self, offset: int) -> None:
        """Note that the records of a delayed partition below an offset are due."""
        self.due_end = offset

    def rewind(self, offset: int) -> None:
        """Continue at an earlier offset."""
        self.position = offset

    def reached_end(self, offset: int) -> None:
        """Note the offset at which nothing more was there to read."""
        self.position = max(self.position, offset)

    def update_watermarks(self, low: int, high: int) -> None:
        """Note the ends of the log; negative if the client doesn't know them. They never move back."""
        self.low_watermark = max(self.low_watermark, low)
        self.note_end(high)

    def note_end(self, offset: int) -> None:
        """Note the end of the log alone."""
        self.high_watermark = max(self.high_watermark, offset)
