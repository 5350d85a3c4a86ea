"""What is written to a wait topic for sink and sweeper: real wait records and tombstones, in a chosen order. Pure."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from bench.contenders.progress_steps import warm
from wait_registry.records import names
from wait_registry.records.original import Original
from wait_registry.records.wait_id import wait_id
from wait_registry.records.wait_record import WaitRecordEncoder

INPUT_TOPIC: Final = "bench.orders"
INPUT_PARTITIONS: Final = 12
GROUP: Final = "bench.billing"
INSTANCE: Final = "host-1-20261121T022000.000Z"
# The first original's own time; registrations come at about this rate.
FIRST_TIME_MS: Final = 1_795_227_600_000
RECORDS_PER_MS: Final = 50
CUSTOMERS: Final = 200_000
HEADERS: Final = (("tenant", b"acme"), ("content-type", b"application/json"))
# Longer than the window in which a compression looks for repetitions.
POOL_BYTES: Final = 4_000_000
POOL: Final = random.Random(7).randbytes(POOL_BYTES // 2).hex().encode()


def pool_piece(index: int, size: int) -> bytes:
    """Return so many bytes that hardly compress, others for each index."""
    first = index * size % (len(POOL) - size)
    return POOL[first : first + size]


@dataclass(frozen=True, slots=True)
class WaitLog:
    """A wait topic's content.

    Attributes:
        topic: its name.
        waits: wait records, each of another id.
        tombstone_after: how many records later a wait's tombstone follows, over all partitions.
        partitions: of the topic.
        value_bytes: of each original value.
        left_open_every: of so many waits one never gets a tombstone; all get one when 0, none gets one when 1.
        expires_in_s: from the moment of writing; negative for what is due at once.
    """

    topic: str
    waits: int
    tombstone_after: int = 1_000
    partitions: int = 4
    value_bytes: int = 200
    left_open_every: int = 0
    expires_in_s: float = 86_400.0

    @property
    def dead_letter_topic(self) -> str:
        """The topic that the wait records name."""
        return f"{self.topic}.dlq"

    @property
    def left_open(self) -> int:
        """How many waits never get a tombstone."""
        return -(-self.waits // self.left_open_every) if self.left_open_every else 0

    @property
    def records(self) -> int:
        """Wait records and tombstones."""
        return 2 * self.waits - self.left_open

    @property
    def waits_ahead(self) -> int:
        """How many waits come before the first tombstone: behind them they alternate, so they are open at any time."""
        return min(self.waits, max(1, self.tombstone_after // 2))

    @property
    def mixed(self) -> tuple[int, int]:
        """The stretch, in records from the beginning, in which waits and tombstones alternate."""
        return self.waits_ahead, self.records - self._resolved(self.waits - self.waits_ahead, self.waits)

    @property
    def measured(self) -> tuple[int, int]:
        """The stretch in which a pace is measured: that part of the mixed one in which contenders are warm."""
        first, last = self.mixed
        return max(first, warm(self.records)), last

    def is_resolved(self, index: int) -> bool:
        """Whether a wait gets a tombstone."""
        return not self.left_open_every or index % self.left_open_every != 0

    def order(self) -> Iterator[tuple[int, bool]]:
        """Yield each record in the order of writing: the index of its wait, and whether it is the wait record."""
        ahead = self.waits_ahead
        for index in range(self.waits + ahead):
            if index < self.waits:
                yield index, True
            if index >= ahead and self.is_resolved(index - ahead):
                yield index - ahead, False

    def _resolved(self, first: int, beyond: int) -> int:
        return sum(map(self.is_resolved, range(first, beyond)))


class Registrations:
    """The wait records of a log, made from their index.

    Headers are copied from a first record's and a few replaced, in half the time that encoding them takes: what is
    measured is who reads them.
    """

    def __init__(self, log: WaitLog, now_ms: int) -> None:
        """Prepare what all records share.

        Args:
            log: what they belong to.
            now_ms: time of writing, ms since the epoch, from which their expiry counts.
        """
        self._log = log
        self.expires_at_ms = now_ms + round(log.expires_in_s * 1000)
        encoder = WaitRecordEncoder(GROUP, INSTANCE, log.dead_letter_topic, "dlq", 3)
        self._template = encoder.headers(self.original(0), self.wait_id(0), self.expires_at_ms)
        self._place = {name: place for place, (name, _) in enumerate(self._template)}

    def wait_id(self, index: int) -> str:
        """Return the id of a registration, as `wait_registry.records.wait_id` derives it."""
        partition, offset = index % INPUT_PARTITIONS, index // INPUT_PARTITIONS
        return wait_id(self._log.topic, INPUT_TOPIC, partition, offset, GROUP, _time_ms(index))

    def value(self, index: int) -> bytes:
        """Return an original value, which compresses hardly at all."""
        return pool_piece(index, self._log.value_bytes)

    def original(self, index: int) -> Original:
        """Return the record that is registered."""
        return Original(
            INPUT_TOPIC,
            index % INPUT_PARTITIONS,
            index // INPUT_PARTITIONS,
            _time_ms(index),
            "create",
            b"customer-%d" % (index * 7919 % CUSTOMERS),
            self.value(index),
            HEADERS,
        )

    def headers(self, index: int, wait_id: str) -> list[tuple[str, bytes | None]]:
        """Return the headers of a wait record, as `WaitRecordEncoder` writes them."""
        headers, place = self._template.copy(), self._place
        for name, value in (
            (names.ORIGINAL_PARTITION, b"%d" % (index % INPUT_PARTITIONS)),
            (names.ORIGINAL_OFFSET, b"%d" % (index // INPUT_PARTITIONS)),
            (names.ORIGINAL_TIMESTAMP, b"%d" % _time_ms(index)),
            (names.ORIGINAL_KEY, b"customer-%d" % (index * 7919 % CUSTOMERS)),
            (names.WAIT_EXPIRATION_UUID, wait_id.encode()),
        ):
            headers[place[name]] = (name, value)
        return headers


def _time_ms(index: int) -> int:
    return FIRST_TIME_MS + index // RECORDS_PER_MS
