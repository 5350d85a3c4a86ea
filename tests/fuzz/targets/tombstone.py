"""Tombstones: any headers are an outcome or none, and the two ways of reading one agree."""

from __future__ import annotations

from tests.fuzz.record_bytes import RecordInput
from tests.fuzz.target import Target
from tests.fuzz.vectors import records
from wait_registry.records.tombstone import Outcome, decode_outcome

WORDS = ("done", "retried", "dead_lettered", "discarded", "expired", "redelivered")


def _read(data: bytes) -> Outcome | None:
    return decode_outcome(RecordInput.of(data).headers)


def _check(data: bytes) -> None:
    given = RecordInput.of(data).headers
    last = [value for name, value in given if name == "WAIT_OUTCOME"][-1:]
    expected = [word for word in WORDS if last == [word.encode()]]
    outcome = decode_outcome(given)
    assert ([] if outcome is None else [outcome.value]) == expected, "read differently"


TARGET = Target(
    "tombstone",
    _read,
    _check,
    lambda: records("tombstone", "encode", "decode"),
    tuple(word.encode() for word in WORDS),
    records=True,
    share=0.3,
)
