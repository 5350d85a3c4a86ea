"""A partition while it is ours: where it stands between the log, the registry and the committed offset."""

from __future__ import annotations

from processor.entry import Entry
from processor.warm_up import WarmUp

UNKNOWN_OFFSET = -1


class AssignedPartition:
    """One assignment of one partition; the next assignment of the same partition is another object.

    Offsets, all in the sense of "next to consume", ``UNKNOWN_OFFSET`` before the first:
    ``position`` after the last record taken, ``prefix`` after the contiguous acknowledged registrations, ``requested``
    of the highest commit asked for, which may have been done whatever was answered, ``confirmed`` of the last one that
    the broker confirmed, ``end_seen`` of the end of the log when it was last reached, transaction markers included.
    Always ``confirmed <= requested <= prefix <= position``. ``low_watermark`` and ``high_watermark`` are where the log
    began and ended when the client last heard of it.
    """

    __slots__ = (
        "committable",
        "confirmed",
        "end_seen",
        "high_watermark",
        "low_watermark",
        "partition",
        "position",
        "requested",
        "topic",
        "warm_up",
    )

    def __init__(self, topic: str, partition: int, start: int = UNKNOWN_OFFSET, warm_up: int = 1) -> None:
        # Kafka's logical offsets (the beginning) are negative; nothing is committed then.
        committed = max(start, UNKNOWN_OFFSET)
        self.topic = topic
        self.partition = partition
        self.position = committed
        self.committable = committed
        self.requested = committed
        self.confirmed = committed
        self.end_seen = UNKNOWN_OFFSET
        self.low_watermark = UNKNOWN_OFFSET
        self.high_watermark = UNKNOWN_OFFSET
        self.warm_up: WarmUp[Entry] = WarmUp(warm_up)

    def __repr__(self) -> str:
        return f"{self.topic}[{self.partition}]"

    @property
    def lag(self) -> int | None:
        """How many records of the log haven't been taken, as far as its end is known; None while it isn't."""
        # Without a committed offset the first record is the log's first.
        position = self.low_watermark if self.position == UNKNOWN_OFFSET else self.position
        if UNKNOWN_OFFSET in (position, self.high_watermark):
            return None
        return max(0, self.high_watermark - max(position, self.end_seen))

    def update_watermarks(self, low: int, high: int) -> None:
        """Take note of the log's ends; negative where the client doesn't know, and never back."""
        self.low_watermark = max(self.low_watermark, low)
        self.high_watermark = max(self.high_watermark, high)
