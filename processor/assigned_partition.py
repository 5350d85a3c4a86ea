"""A partition while it is ours: where it stands between the log, the registry and the committed offset."""

from __future__ import annotations

from processor.entry import Entry
from processor.first_window import FirstWindow

UNKNOWN_OFFSET = -1


class AssignedPartition:
    """One assignment of one partition; the next assignment of the same partition is another object.

    Offsets, all in the sense of "next to consume", ``UNKNOWN_OFFSET`` before the first:
    ``position`` after the last record taken, ``prefix`` after the contiguous acknowledged registrations, ``requested``
    of the last commit asked for that may have been done, ``confirmed`` of the last one that the broker confirmed,
    ``end_seen`` of the end of the log when it was last reached (with ``--once`` only). Always ``confirmed <= requested
    <= prefix <= position``.
    """

    __slots__ = (
        "confirmed",
        "end_seen",
        "high_watermark",
        "partition",
        "position",
        "prefix",
        "requested",
        "topic",
        "window",
    )

    def __init__(self, topic: str, partition: int, start: int = UNKNOWN_OFFSET, first_window: int = 1) -> None:
        # Kafka's logical offsets (the beginning) are negative; nothing is committed then.
        committed = max(start, UNKNOWN_OFFSET)
        self.topic = topic
        self.partition = partition
        self.position = committed
        self.prefix = committed
        self.requested = committed
        self.confirmed = committed
        self.end_seen = UNKNOWN_OFFSET
        self.high_watermark = UNKNOWN_OFFSET
        self.window: FirstWindow[Entry] = FirstWindow(first_window)

    def __repr__(self) -> str:
        return f"{self.topic}[{self.partition}]"
