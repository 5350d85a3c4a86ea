"""A batch of the sink: every record becomes a row, is quarantined or resolved, and what goes to COPY can be read."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from sink.copy_binary import copy_stream
from sink.dead_letter_writer import DeadLetterWriter
from sink.wait_rows import COLUMNS, SHOWABLE_MS
from sink.wait_writer import WaitWriter
from tests.fuzz.record_bytes import RecordInput
from tests.fuzz.rereading.copy_stream import reread_copy
from tests.fuzz.rereading.headers_json import Refused, Undecided, reread_headers
from tests.fuzz.rereading.wait_record import reread_wait_record
from tests.fuzz.target import Target
from tests.fuzz.targets.wait_record import seeds as wait_records
from tests.fuzz.vectors import records
from tests.unit.sink.batches import Row, batch_of

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
    written = reread_copy(b"".join(copy_stream(waits.rows.columns)))
    try:
        expected, unreadable = _model(rows)
    except Undecided:
        return
    assert sorted(_key_and_place(row) for row in written) == expected, "other rows"
    assert sorted(record.offset for record in waits.unreadable) == unreadable, "others in quarantine"
    tombstones = {row.key for row in rows if row.value is None and _keyed(row)}
    found = reread_copy(b"".join(copy_stream(waits.tombstones)))
    assert sorted(row[0] or b"" for row in found) == sorted(key or b"" for key in tombstones), "other tombstones"
    letters = reread_copy(b"".join(copy_stream(DeadLetterWriter().prepare(batch, {}).columns)))
    assert len(letters) == len(rows), "a dead letter lost"
    for letter in letters:
        assert letter[4] is not None and letter[4][:1] == b"\x01"
        reread_headers(letter[4][1:])


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
    try:
        reread_wait_record(row.key, b"x", (("ORIGINAL_TOPIC", b"t"), ("WAIT_EXPIRATION_TIME", b"2026-11-21T00:00Z")))
    except Refused:
        return False
    return True


def _readable(row: Row) -> bool:
    try:
        return reread_wait_record(row.key, row.value, row.headers or ())["expires_at_ms"] in SHOWABLE_MS
    except Refused:
        return False


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
