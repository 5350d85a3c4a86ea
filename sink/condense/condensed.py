"""What a range of the wait topic comes to: bytes for COPY, and what goes into other tables. It is a pure function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from sink.condense.compaction import compact
from sink.condense.copy_bytes import CopyRows, copy_rows_of
from sink.condense.late_outcomes import LateOutcome, late_outcomes
from sink.condense.quarantined import Quarantined, quarantined
from sink.condense.wait_rows import BY_COLUMNS_FROM, COLUMNS, EarlierWaits, wait_rows
from sink.position import SHOWABLE_MS
from sink.read.record_columns import records_of
from wait_registry.records.tombstone import Outcome

# Name and type of each column of ``staged_tombstone``.
TOMBSTONE_COLUMNS: Final = {
    "wait_expiration_uuid": "text",
    "wait_partition": "int4",
    "last_offset": "int8",
    "first_offset": "int8",
    "first_time": "timestamptz",
    "first_outcome": "text",
    "first_is_tombstone": "bool",
    "by_processor": "bool",
    "wait_expiration_time": "timestamptz",
}
_PROCESSOR_OUTCOMES: Final = pa.array([outcome.value for outcome in Outcome if outcome.by_processor], pa.string())
_KNOWN_OUTCOMES: Final = pa.array([outcome.value for outcome in Outcome], pa.string())


@dataclass(frozen=True, slots=True)
class Condensed:
    """Rows of ``staged_wait`` and ``staged_tombstone``, late outcomes, and records that can't be decoded."""

    waits: CopyRows
    tombstones: CopyRows
    late: list[LateOutcome]
    unreadable: list[Quarantined]


def condense(batch: pa.Table, by_columns_from: int = BY_COLUMNS_FROM) -> Condensed:
    """Compact and decode records of the wait topic; bad data raises nothing.

    Args:
        batch: the columns of `sink.read.record_columns`, in any order of records.
        by_columns_from: see `sink.condense.wait_rows.wait_rows`.

    Raises:
        OverflowError: as `sink.condense.compaction.require_packable`.
    """
    compacted = compact(batch)
    unreadable = [
        quarantined(record, "the key is no wait ID (canonical lower-case UUID)")
        for record in records_of(compacted.unkeyed)
    ]
    tombstones = copy_rows_of(_staged(compacted.tombstones).to_batches(), TOMBSTONE_COLUMNS)
    rows = wait_rows(compacted.survivors, EarlierWaits(batch), unreadable, by_columns_from)
    waits = copy_rows_of(rows, COLUMNS)
    return Condensed(waits, tombstones, late_outcomes(compacted.entwined), unreadable)


def _staged(found: pa.Table) -> pa.Table:
    """Return the rows of ``staged_tombstone``."""
    is_known = pc.is_in(found["first_outcome"], _KNOWN_OUTCOMES)
    outcome = pc.if_else(is_known, found["first_outcome"], pa.scalar(None, pa.string()))
    return pa.table(
        {
            "wait_expiration_uuid": found["key"],
            "wait_partition": found["partition"],
            "last_offset": found["last_offset"],
            "first_offset": found["first_offset"],
            "first_time": _clamped(found["first_time_ms"]),
            "first_outcome": outcome,
            "first_is_tombstone": found["first_is_tombstone"],
            "by_processor": pc.is_in(outcome, _PROCESSOR_OUTCOMES),
            "wait_expiration_time": _clamped(found["wait_expires_ms"]),
        }
    )


def _clamped(times_ms: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return times that a timestamptz can show; a foreign record's may be any number."""
    at_most = pc.min_element_wise(times_ms, SHOWABLE_MS[-1], skip_nulls=False)
    return pc.max_element_wise(at_most, SHOWABLE_MS[0], skip_nulls=False)
