"""Consumed records: whatever headers a record has, it is worked on, and none of them is lost."""

from __future__ import annotations

from tests.fuzz.record_bytes import RecordInput
from tests.fuzz.target import Target
from tests.fuzz.targets.lineage import seeds
from wait_registry.records.consumed import Consumed, consumed
from wait_registry.records.lineage import split_lineage
from wait_registry.records.original import Original
from wait_registry.records.wait_record import WaitRecordEncoder, decode_wait_record

GROUP = "billing"
WAIT_ID = "019fc448-d29b-8abc-9def-0123456789ab"
ENCODER = WaitRecordEncoder(GROUP, "host-1", "waitreg.dlq", "redeliver", 3)


def _read(data: bytes) -> Consumed:
    given = RecordInput.of(data)
    return consumed("orders", 3, 41, 1_795_227_600_123, "create", given.key, given.value, given.headers, GROUP)


def _check(data: bytes) -> None:
    given = RecordInput.of(data)
    original, source, delivery = _read(data)
    assert (original.key, original.value) == (given.key, given.value), "key or value changed"
    originals, lineage, _ = split_lineage(given.headers)
    again = lineage if lineage is not None and lineage.group == GROUP else None
    assert original.headers == (given.headers if again is None else originals), "headers changed"
    assert (source is None) == (again is None), "delivered again or not"
    assert delivery == (1 if again is None else again.delivery or 1), "counted differently"
    _registered(original, delivery)


def _registered(original: Original, delivery: int) -> None:
    headers = ENCODER.headers(original, WAIT_ID, 0, delivery)
    read = decode_wait_record(WAIT_ID, original.value or b"", headers)
    assert (read.original, read.delivery) == (original, delivery), "registered differently"


TARGET = Target("consumed", _read, _check, seeds, (GROUP.encode(), b"0", b"1", b"2147483647"), records=True)
