"""Tombstones that came too late: nothing was open any more, or what they settle had expired."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import pyarrow as pa

from sink.condense.header_values import header_values, times_ms
from sink.position import clamped
from sink.read.record_columns import HEADERS, KEY, OFFSET, PARTITION, TIME_MS, TOPIC, VALUE, records_of
from wait_registry.records.header_names import WAIT_EXPIRATION_TIME
from wait_registry.records.tombstone import Outcome, decode_outcome


@dataclass(frozen=True, slots=True)
class Entry:
    """One record of a key; times in ms since the epoch, ``expires_at_ms`` None for a tombstone."""

    offset: int
    time_ms: int
    is_tombstone: bool
    outcome: Outcome | None = None
    expires_at_ms: int | None = None


class LateOutcome(NamedTuple):
    """A tombstone to be kept because it came too late: one row of the table ``late_outcome``."""

    wait_id: str
    outcome: str | None
    topic: str
    partition: int
    offset: int
    time_ms: int


def late_entries(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield the tombstones of one key, in the order of offsets, that the batch itself shows to be late.

    One is late when the record before it is a tombstone too, or when a processor wrote it after the expiry of the wait
    that it settles. The first record's case is open: only the table knows what was before.
    """
    before: Entry | None = None
    for entry in entries:
        if entry.is_tombstone and before is not None and (before.is_tombstone or _overdue(entry, before)):
            yield entry
        before = entry


def late_outcomes(entwined: pa.Table) -> list[LateOutcome]:
    """Return what `late_entries` finds in the records of `sink.condense.compaction.Compacted.entwined`."""
    [expiry_times] = header_values(entwined[HEADERS], WAIT_EXPIRATION_TIME)
    expiries = times_ms(expiry_times).to_pylist()
    ordered = sorted(
        (record[KEY].decode(), record[TOPIC], record[PARTITION], record[OFFSET], _entry(record, expiry))
        for record, expiry in zip(records_of(entwined), expiries, strict=True)
    )
    return [
        LateOutcome(key, entry.outcome and entry.outcome.value, topic, partition, entry.offset, clamped(entry.time_ms))
        for (key, topic, partition), items in groupby(ordered, key=itemgetter(0, 1, 2))
        for entry in late_entries(item[-1] for item in items)
    ]


def _entry(record: dict[str, object], expires_at_ms: int | None) -> Entry:
    offset, time_ms = record[OFFSET], record[TIME_MS]
    assert isinstance(offset, int) and isinstance(time_ms, int)
    if record[VALUE] is not None:
        return Entry(offset, time_ms, is_tombstone=False, expires_at_ms=expires_at_ms)
    headers = record[HEADERS]
    assert isinstance(headers, tuple)
    return Entry(offset, time_ms, is_tombstone=True, outcome=decode_outcome(headers))


def _overdue(tombstone: Entry, wait: Entry) -> bool:
    by_processor = tombstone.outcome is not None and tombstone.outcome.by_processor
    return by_processor and wait.expires_at_ms is not None and tombstone.time_ms > wait.expires_at_ms
