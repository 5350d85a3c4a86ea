"""What the consumer knows of the log of an assigned partition."""

from __future__ import annotations

from wait_registry.records.topics import TopicPartition

UNKNOWN_OFFSET = -1


class AssignedLog:
    """One assignment of one partition; the next assignment of the same partition is another object.

    Offsets, ``UNKNOWN_OFFSET`` before the first: ``position`` after the last polled record, ``end_seen`` of the end of
    the log when it was last reached, transaction markers included; ``low_watermark`` and ``high_watermark`` are the
    start and end of the log in the client's last fetch. ``emptied_id`` is the topic's ID if what is committed of it was
    handled by this group, and None otherwise.
    """

    __slots__ = ("emptied_id", "end_seen", "high_watermark", "low_watermark", "partition", "position", "topic")

    def __init__(self, place: TopicPartition, start: int | None, emptied_id: str | None = None) -> None:
        self.topic, self.partition = place
        self.position = UNKNOWN_OFFSET if start is None else start
        self.emptied_id = emptied_id
        self.end_seen = UNKNOWN_OFFSET
        self.low_watermark = UNKNOWN_OFFSET
        self.high_watermark = UNKNOWN_OFFSET

    def __repr__(self) -> str:
        return f"{self.topic}[{self.partition}]"

    @property
    def place(self) -> TopicPartition:
        """Topic and number."""
        return self.topic, self.partition

    @property
    def lag(self) -> int | None:
        """How many records aren't polled yet; None while the end of the log is unknown."""
        # Without a committed offset the first record is the log's first.
        position = self.low_watermark if self.position == UNKNOWN_OFFSET else self.position
        if UNKNOWN_OFFSET in (position, self.high_watermark):
            return None
        return max(0, self.high_watermark - max(position, self.end_seen))

    def rewind(self, offset: int) -> None:
        """Continue at an earlier offset."""
        self.position = offset
        self.end_seen = min(self.end_seen, offset)

    def update_watermarks(self, low: int, high: int) -> None:
        """Note the ends of the log; negative if the client doesn't know them. They never move back."""
        self.low_watermark = max(self.low_watermark, low)
        self.high_watermark = max(self.high_watermark, high)
