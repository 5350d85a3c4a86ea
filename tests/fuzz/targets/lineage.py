"""The lineage block: nothing is ever lost, and what is cut off is what was appended."""

from __future__ import annotations

from collections.abc import Iterator

from tests.fuzz.record_bytes import RecordInput
from tests.fuzz.target import Target
from tests.fuzz.vectors import records
from wait_registry.records.lineage import append_lineage, split_lineage


def _read(data: bytes) -> object:
    return split_lineage(RecordInput.of(data).headers)


def _check(data: bytes) -> None:
    headers = RecordInput.of(data).headers
    originals, lineage, failure = split_lineage(headers)
    assert originals == headers[: len(originals)], "headers changed"
    if lineage is None:
        assert (originals, failure) == (headers, {}), "a block that is none"
        return
    assert headers[len(originals)] == ("WAIT_LINEAGE", b"%d" % len(originals)), "cut off elsewhere than said"
    assert all(name.startswith("DLQ_") for name in failure), "not of the failure"
    twice = append_lineage(append_lineage(headers, lineage), lineage)
    assert split_lineage(twice)[:2] == (tuple(append_lineage(headers, lineage)), lineage), "not the block appended last"


def seeds() -> Iterator[bytes]:
    """Yield the golden records that end in a block, or nearly."""
    yield from records("lineage", "append", "split")
    yield from records("redelivery", "encode", "consumed")
    yield from records("dead_letter", "encode", "decode")


TARGET = Target("lineage", _read, _check, seeds, (b"0", b"1", b"12", b"-1", b"00"), records=True)
