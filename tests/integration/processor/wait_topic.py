"""The contents of a wait topic, read by clients that share nothing with the product's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from tests.support.kafka_io import ReadRecord


@dataclass(frozen=True, slots=True)
class Story:
    """All entries of one wait id, in the order of the log."""

    waits: tuple[ReadRecord, ...]
    tombstones: tuple[ReadRecord, ...]

    @property
    def origin(self) -> tuple[str, int, int]:
        """Topic, partition and offset of the record's first delivery."""
        wait = self.waits[0]
        return wait.text("ORIGINAL_TOPIC"), int(wait.text("ORIGINAL_PARTITION")), int(wait.text("ORIGINAL_OFFSET"))

    @property
    def outcomes(self) -> list[str]:
        """The tombstones' outcomes."""
        return [tombstone.text("WAIT_OUTCOME") for tombstone in self.tombstones]

    @property
    def resolved(self) -> bool:
        """Whether the last entry is a tombstone, in the partition of the wait records."""
        partitions = {record.partition for record in (*self.waits, *self.tombstones)}
        assert len(partitions) == 1, "a key never leaves its partition"
        return bool(self.tombstones) and self.tombstones[-1].offset > self.waits[-1].offset


def stories(records: Iterable[ReadRecord]) -> dict[tuple[str, int, int], Story]:
    """Group a wait topic's records by wait id; the key of the answer is the record's origin."""
    entries: dict[bytes | None, list[ReadRecord]] = defaultdict(list)
    for record in sorted(records, key=lambda record: (record.partition, record.offset)):
        entries[record.key].append(record)
    found = [
        Story(
            tuple(record for record in own if record.value is not None),
            tuple(record for record in own if record.value is None),
        )
        for own in entries.values()
    ]
    return {story.origin: story for story in found}
