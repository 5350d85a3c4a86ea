"""An assigned partition and its offsets: polled, committable, requested and committed."""

from __future__ import annotations

from processor.entry import Entry
from processor.warm_up import WarmUp

UNKNOWN_OFFSET = -1


class AssignedPartition:
    """One assignment of one partition; the next assignment of the same partition is another object.

    Offsets, all of the next record, ``UNKNOWN_OFFSET`` before the first:
    ``position`` after the last polled record, ``committable`` below which every record is settled or registered,
    ``requested`` of the highest requested commit, which may be done whatever the answer was, ``confirmed`` of the last
    commit that the broker confirmed, ``end_seen`` of the end of the log when it was last reached, transaction markers
    included. Always ``confirmed <= requested <= committable <= position``. ``low_watermark`` and ``high_watermark`` are
    the start and end of the log in the client's last fetch.
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
        """How many records aren't polled yet; None while the end of the log is unknown."""
        # Without a committed offset the first record is the log's first.
        position = self.low_watermark if self.position == UNKNOWN_OFFSET else self.position
        if UNKNOWN_OFFSET in (position, self.high_watermark):
            return None
        return max(0, self.high_watermark - max(position, self.end_seen))

    def update_watermarks(self, low: int, high: int) -> None:
        """Note the ends of the log; negative if the client doesn't know them. They never move back."""
        self.low_watermark = max(self.low_watermark, low)
        self.high_watermark = max(self.high_watermark, high)
