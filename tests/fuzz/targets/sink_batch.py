"""A batch of the sink: every record becomes a row, is quarantined or resolved, and what goes to COPY can be read."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from sink.apply.copy_binary import copy_stream
from sink.apply.dead_letter_writer import DeadLetterWriter
from sink.apply.wait_rows import COLUMNS
from sink.apply.wait_writer import WaitWriter
from sink.position import SHOWABLE_MS
from tests.fuzz.inputs import records
from tests.fuzz.record_bytes import RecordInput
from tests.fuzz.target import Target
from tests.fuzz.targets.records import wait_records
from tests.unit.sink.batches import Row, batch_of
from wait_registry.errors import DataError
from wait_registry.records.headers import decode_headers_json
from wait_registry.records.wait_id import is_wait_id
from wait_registry.records.wait_record import decode_wait_record

Rows = list[list[bytes | None]]

CUT = b"\xf0\x9f\x94\xaa"
MAX_RECORDS = 6
_OFFSET = [name for name, _, _ in COLUMNS].index("wait_offset")


def rows_of(data: bytes) -> list[Row]:
    """Cut any bytes into records of one partition."""
    given = [RecordInput.of(part) for part in data.split(CUT, MAX_RECORDS - 1)]
    return [Row(one.key, one.value, 0, offset, headers=_showable(one)) for offset, one in enumerate(given)]


def _showable(record: RecordInput) -> tuple[tuple[str, bytes | None], ...]:
    # Java's strings for names are what UTF-8 gave: no halves of surrogate pairs come from a topic.
    return tuple((name.encode("utf-8", "replace").decode(), value) for name, value in record.headers)


def _read(data: bytes) -> object:
    batch = batch_of(rows_of(data))
    waits, letters = WaitWriter("wait").prepare(batch, {}), DeadLetterWriter().prepare(batch, {})
    return waits, [
        b"".join(copy_stream(columns)) for columns in (waits.rows.columns, waits.tombstones, letters.columns)
    ]


def _check(data: bytes) -> None:
    rows = rows_of(data)
    batch = batch_of(rows)
    waits = WaitWriter("wait").prepare(batch, {})
    written = rows_of_copy(b"".join(copy_stream(waits.rows.columns)))
    expected, unreadable = _model(rows)
    assert sorted(_key_and_place(row) for row in written) == expected, "other rows"
    assert sorted(record.offset for record in waits.unreadable) == unreadable, "others in quarantine"
    tombstones = {row.key for row in rows if row.value is None and _keyed(row)}
    found = rows_of_copy(b"".join(copy_stream(waits.tombstones)))
    assert sorted(row[0] or b"" for row in found) == sorted(key or b"" for key in tombstones), "other tombstones"
    letters = rows_of_copy(b"".join(copy_stream(DeadLetterWriter().prepare(batch, {}).columns)))
    assert len(letters) == len(rows), "a dead letter lost"
    for letter in letters:
        assert letter[4] is not None and letter[4][:1] == b"\x01"
        decode_headers_json(letter[4][1:])


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


def rows_of_copy(stream: bytes) -> Rows:
    """Return the rows of a stream in PostgreSQL's binary COPY format, as its documentation describes it.

    Raises:
        AssertionError: it isn't one, or has more behind its end.
    """
    assert stream[:19] == b"PGCOPY\n\xff\r\n\0" + bytes(8), "the signature"
    rows: Rows = []
    at = 19
    while True:
        (fields,) = struct.unpack_from(">h", stream, at)
        at += 2
        if fields == -1:
            assert at == len(stream), f"{len(stream) - at} bytes behind the end"
            return rows
        row: list[bytes | None] = []
        for _ in range(fields):
            (length,) = struct.unpack_from(">i", stream, at)
            at += 4
            row.append(None if length == -1 else stream[at : at + length])
            assert length >= -1 and at + length <= len(stream), f"a field of {length} bytes"
            at += max(length, 0)
        rows.append(row)


def _key_and_place(row: list[bytes | None]) -> tuple[bytes, int]:
    offset = row[_OFFSET]
    assert row[0] is not None and offset is not None
    return row[0], struct.unpack(">q", offset)[0]


def _seeds() -> Iterator[bytes]:
    waits = list(wait_records())
    tombstone = RecordInput(b"019fc448-d29b-8abc-9def-0123456789ab", None, (("WAIT_OUTCOME", b"done"),)).encode()
    yield from waits
    yield CUT.join([waits[0], tombstone, waits[0]])
    yield CUT.join([tombstone, tombstone])
    yield from records("dead_letter", "encode", "decode")


TARGET = Target(
    "sink_batch",
    _read,
    _check,
    _seeds,
    (CUT, b"019fc448-d29b-8abc-9def-0123456789ab", b"2026-11-21T02:20:00.123Z", b"done", b"expired"),
    records=True,
    share=2.0,
)
