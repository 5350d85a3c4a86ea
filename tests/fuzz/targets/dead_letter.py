"""Dead letters: whatever is in a dead letter topic is read, as ours or as a record of somebody else's."""

from __future__ import annotations

from tests.fuzz.record_bytes import RecordInput
from tests.fuzz.target import Target
from tests.fuzz.targets.lineage import seeds
from wait_registry.records.dead_letter import dead_letter_headers, decode_dead_letter


def _read(data: bytes) -> object:
    return decode_dead_letter(RecordInput.of(data).headers)


def _check(data: bytes) -> None:
    headers = RecordInput.of(data).headers
    letter = decode_dead_letter(headers)
    if letter.failure is None or letter.lineage is None:
        assert (letter.headers, letter.lineage, letter.failure) == (headers, None, None), "somebody else's"
        return
    texts = (letter.failure.error_class, letter.failure.error_message, letter.failure.error_stacktrace)
    for text in filter(None, texts):
        assert "\0" not in text and text.encode().decode() == text, "what Postgres text can't hold"
    written = dead_letter_headers(letter.headers, letter.lineage, letter.failure)
    back = decode_dead_letter(written)
    assert (back.headers, back.lineage) == (letter.headers, letter.lineage), "not as it was written"
    assert back.lineage is not None and back.failure is not None
    assert dead_letter_headers(back.headers, back.lineage, back.failure) == written, "bounded twice"


TARGET = Target(
    "dead_letter", _read, _check, seeds, (b"failed", b"malformed", b"2026-11-21T02:20:00.123Z", b"\xff\0"), records=True
)
