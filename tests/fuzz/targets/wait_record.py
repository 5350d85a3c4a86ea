"""Wait records: any record is read or refused in few words, and what was read is written back the same."""

from __future__ import annotations

from collections.abc import Iterator

from tests.fuzz.record_bytes import RecordInput
from tests.fuzz.target import Target
from tests.fuzz.vectors import records
from tests.support.wait_record_encoding import encode_wait_record
from wait_registry.errors import DataError
from wait_registry.records.wait_record import WaitRecord, decode_wait_record

MAX_MESSAGE = 1000


def decoded(record: RecordInput) -> WaitRecord | None:
    """Read a record, None when it is refused."""
    try:
        return decode_wait_record(record.key, record.value, record.headers)
    except DataError as error:
        assert len(str(error)) < MAX_MESSAGE, "a refusal that quotes its input"
        return None


def _read(data: bytes) -> WaitRecord | None:
    return decoded(RecordInput.of(data))


def _check(data: bytes) -> None:
    record = decoded(RecordInput.of(data))
    if record is not None:
        value, headers = encode_wait_record(record)
        assert decode_wait_record(record.wait_id.encode(), value, headers) == record, "not as it was written"


def seeds() -> Iterator[bytes]:
    """Yield the golden wait records of both dialects."""
    yield from records("wait_record", "decode")
    yield from records("wait_record_legacy", "decode")


TARGET = Target(
    "wait_record",
    _read,
    _check,
    seeds,
    (
        b"019fc448-d29b-8abc-9def-0123456789ab",
        b"2026-11-21T02:20:00.123Z",
        b"9223372036854775807",
        b"-9223372036854775808",
        b"2147483648",
        b"redeliver",
        b"append",
        b"true",
        b'[["a","AA=="]]',
        b'{"a":"b"}',
    ),
    records=True,
    share=2.0,
)
