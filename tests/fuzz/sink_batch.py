"""A batch of the sink: every record becomes a row, is quarantined or resolved, and COPY takes every value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sink.apply.dead_letter_writer import COLUMNS as DEAD_LETTER_COLUMNS
from sink.apply.dead_letter_writer import dead_letter_rows
from sink.condense.condensed import condense
from sink.condense.wait_rows import COLUMNS
from sink.position import SHOWABLE_MS
from tests.fuzz.inputs import RecordInput, golden_records
from tests.unit.sink.batches import Row, batch_of
from tests.unit.sink.copied import rows_in
from tests.unit.sink.test_wait_rows import as_copied
from wait_registry.errors import DataError
from wait_registry.records.headers import decode_headers_json
from wait_registry.records.wait_id import is_wait_id
from wait_registry.records.wait_record import decode_wait_record

CUT = b"\xf0\x9f\x94\xaa"
MAX_RECORDS = 6
_OFFSET = list(COLUMNS).index("wait_offset")
_HEADERS = list(DEAD_LETTER_COLUMNS).index("headers")


def rows_of(inputs: Iterable[bytes]) -> list[Row]:
    """Read any bytes as records of one partition."""
    # Java's strings for names are what UTF-8 gave: no halves of surrogate pairs come from a topic.
    return [
        Row(key, value, 0, at, headers=tuple((name.encode("utf-8", "replace").decode(), one) for name, one in headers))
        for at, (key, value, headers) in enumerate(map(RecordInput.of, inputs))
    ]


def _records(data: bytes) -> list[Row]:
    return rows_of(data.split(CUT, MAX_RECORDS - 1))


def read(data: bytes) -> tuple[list[Any], list[int], list[str], list[Any]]:
    """Return the rows, the offsets in quarantine, the keys of tombstones, and the rows of the same dead letters."""
    batch = batch_of(_records(data))
    condensed = condense(batch, by_columns_from=0)
    waits = rows_in(condensed.waits.portions)
    assert condensed == condense(batch, by_columns_from=MAX_RECORDS + 1), "by columns otherwise than one by one"
    quarantined = [record.offset for record in condensed.unreadable]
    tombstones = [(row[0] or b"").decode() for row in rows_in(condensed.tombstones.portions)]
    return waits, quarantined, tombstones, as_copied(dead_letter_rows(batch, []), DEAD_LETTER_COLUMNS)


def check(data: bytes) -> None:
    """Every record becomes a row, is quarantined or resolved, as a reading key by key says."""
    rows = _records(data)
    waits, quarantined, tombstones, letters = read(data)
    expected, unreadable = _model(rows)
    assert sorted((row[0], int.from_bytes(row[_OFFSET])) for row in waits) == expected, "other rows"
    assert sorted(quarantined) == unreadable, "others in quarantine"
    settled = {row.key.decode() for row in rows if row.value is None and row.key is not None and _keyed(row)}
    assert sorted(tombstones) == sorted(settled), "other tombstones"
    assert len(letters) == len(rows), "a dead letter lost"
    for letter in letters:
        assert letter[_HEADERS][:1] == b"\x01"
        decode_headers_json(letter[_HEADERS][1:])


def _model(rows: list[Row]) -> tuple[list[tuple[bytes, int]], list[int]]:
    """Return what stands at the end and what can't be read, key by key, from the newest record back."""
    standing, unreadable = [], [row.offset for row in rows if not _keyed(row)]
    for key in {row.key for row in rows if _keyed(row)}:
        for row in reversed([row for row in rows if row.key == key]):
            if row.value is None:
                break
            if _readable(row):
                standing.append((key or b"", row.offset))
                break
            unreadable.append(row.offset)
    return sorted(standing), sorted(unreadable)


def _keyed(row: Row) -> bool:
    return row.key is not None and is_wait_id(row.key.decode("ascii", "replace"))


def _readable(row: Row) -> bool:
    try:
        return decode_wait_record(row.key, row.value, row.headers or ()).expires_at_ms in SHOWABLE_MS
    except DataError:
        return False


def batches() -> Iterator[bytes]:
    """Yield batches to begin with."""
    waits = list(golden_records("wait_record", "wait_record_legacy"))
    tombstone = RecordInput(b"019fc448-d29b-8abc-9def-0123456789ab", None, (("WAIT_OUTCOME", b"done"),)).encode()
    yield from waits
    yield CUT.join([waits[0], tombstone, waits[0]])
    yield CUT.join([tombstone, tombstone])
    yield from golden_records("dead_letter")
