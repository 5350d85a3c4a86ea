"""Readers of Kafka records: wait records, tombstones, lineage, dead letters, consumed records, trace context."""

from __future__ import annotations

from collections.abc import Iterator

from opentelemetry.context import Context
from opentelemetry.trace import get_current_span

from tests.fuzz.inputs import records
from tests.fuzz.record_bytes import RecordInput
from tests.fuzz.target import Target
from tests.support.wait_record_encoding import encode_wait_record
from wait_registry.errors import DataError
from wait_registry.records.consumed import Consumed, consumed
from wait_registry.records.dead_letter import dead_letter_headers, decode_dead_letter
from wait_registry.records.lineage import append_lineage, split_lineage
from wait_registry.records.tombstone import Outcome, decode_outcome
from wait_registry.records.wait_record import WaitRecord, WaitRecordEncoder, decode_wait_record
from wait_registry.telemetry.tracing_spans import context_of

GROUP = "billing"
WAIT_ID = "019fc448-d29b-8abc-9def-0123456789ab"
ENCODER = WaitRecordEncoder(GROUP, "host-1", "waitreg.dlq", "redeliver", 3)
OUTCOMES = ("done", "retried", "dead_lettered", "discarded", "expired", "redelivered")
TRACEPARENT = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def decoded(record: RecordInput) -> WaitRecord | None:
    """Read a wait record; None when it is refused."""
    try:
        return decode_wait_record(record.key, record.value, record.headers)
    except DataError as error:
        assert len(str(error)) < 1000, "a refusal that quotes its input"
        return None


def read_wait_record(data: bytes) -> WaitRecord | None:
    return decoded(RecordInput.of(data))


def check_wait_record(data: bytes) -> None:
    """Any record is read, or refused in few words, and what was read is written back the same."""
    record = read_wait_record(data)
    if record is not None:
        value, headers = encode_wait_record(record)
        assert decode_wait_record(record.wait_id.encode(), value, headers) == record, "not as it was written"


def wait_records() -> Iterator[bytes]:
    """Yield the golden wait records of both dialects."""
    yield from records("wait_record", "decode")
    yield from records("wait_record_legacy", "decode")


def read_outcome(data: bytes) -> Outcome | None:
    return decode_outcome(RecordInput.of(data).headers)


def check_tombstone(data: bytes) -> None:
    """Any headers are an outcome or none, as the last WAIT_OUTCOME says."""
    last = [value for name, value in RecordInput.of(data).headers if name == "WAIT_OUTCOME"][-1:]
    expected = [word for word in OUTCOMES if last == [word.encode()]]
    outcome = read_outcome(data)
    assert ([] if outcome is None else [outcome.value]) == expected, "read differently"


def tombstones() -> Iterator[bytes]:
    return records("tombstone", "encode", "decode")


def read_lineage(data: bytes) -> object:
    return split_lineage(RecordInput.of(data).headers)


def check_lineage(data: bytes) -> None:
    """Nothing is ever lost, and what is cut off is what was appended."""
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


def republished() -> Iterator[bytes]:
    """Yield the golden records that end in a lineage block, or nearly."""
    yield from records("lineage", "append", "split")
    yield from records("redelivery", "encode", "consumed")
    yield from records("dead_letter", "encode", "decode")


def read_dead_letter(data: bytes) -> object:
    return decode_dead_letter(RecordInput.of(data).headers)


def check_dead_letter(data: bytes) -> None:
    """Any record of a dead letter topic is read, as ours or as one that another client wrote."""
    headers = RecordInput.of(data).headers
    letter = decode_dead_letter(headers)
    if letter.failure is None or letter.lineage is None:
        assert (letter.headers, letter.lineage, letter.failure) == (headers, None, None), "another client's"
        return
    texts = (letter.failure.error_class, letter.failure.error_message, letter.failure.error_stacktrace)
    for text in filter(None, texts):
        assert "\0" not in text and text.encode().decode() == text, "what Postgres text can't hold"
    written = dead_letter_headers(letter.headers, letter.lineage, letter.failure)
    back = decode_dead_letter(written)
    assert (back.headers, back.lineage) == (letter.headers, letter.lineage), "not as it was written"
    assert back.lineage is not None and back.failure is not None
    assert dead_letter_headers(back.headers, back.lineage, back.failure) == written, "bounded twice"


def read_consumed(data: bytes) -> Consumed:
    given = RecordInput.of(data)
    return consumed(
        "orders", 3, 41, 1_795_227_600_123, "create", given.key, given.value, given.headers, GROUP, "orders", True
    )


def check_consumed(data: bytes) -> None:
    """Whatever headers a consumed record has, it is worked on, and no header is lost."""
    given = RecordInput.of(data)
    original, source, delivery, _, _ = read_consumed(data)
    assert (original.key, original.value) == (given.key, given.value), "key or value changed"
    originals, lineage, _ = split_lineage(given.headers)
    ours = lineage is not None and (lineage.group, lineage.original_topic) == (GROUP, "orders")
    again = lineage if ours else None
    assert original.headers == (given.headers if again is None else originals), "headers changed"
    assert (source is None) == (again is None), "delivered again or not"
    assert delivery == (1 if again is None else again.delivery or 1), "counted differently"
    registered = ENCODER.headers(original, WAIT_ID, 0, delivery)
    read = decode_wait_record(WAIT_ID, original.value or b"", registered)
    assert (read.original, read.delivery) == (original, delivery), "registered differently"


def read_trace_context(data: bytes) -> Context:
    return context_of(RecordInput.of(data).headers)


def check_trace_context(data: bytes) -> None:
    """traceparent and tracestate of any record are a context or none."""
    found = get_current_span(read_trace_context(data)).get_span_context()
    if found.is_valid:
        last = [value for name, value in RecordInput.of(data).headers if name == "traceparent"][-1]
        assert last is not None and f"{found.trace_id:032x}-{found.span_id:016x}".encode() in last, "another trace"


def traced() -> Iterator[bytes]:
    for traceparent in (TRACEPARENT, TRACEPARENT.upper(), b"ff" + TRACEPARENT[2:], TRACEPARENT + b"-more"):
        for tracestate in (b"vendor=1", b"a=1,b=2,a=3", b"x" * 1025):
            yield RecordInput(None, b"", (("traceparent", traceparent), ("tracestate", tracestate))).encode()


OUTCOME_WORDS = tuple(word.encode() for word in OUTCOMES)
FAILURE_WORDS = (b"failed", b"malformed", b"2026-11-21T02:20:00.123Z", b"\xff\0")
WAIT_RECORD_WORDS = (
    *(WAIT_ID.encode(), b"2026-11-21T02:20:00.123Z", b"redeliver", b"append", b"true", b'[["a","AA=="]]', b'{"a":"b"}'),
    *(b"9223372036854775807", b"-9223372036854775808", b"2147483648"),
)
LINEAGE_WORDS = (b"0", b"1", b"12", b"-1", b"00")
CONSUMED_WORDS = (GROUP.encode(), b"0", b"1", b"2147483647")
TRACE_WORDS = (TRACEPARENT, b"=", b",", b"00-")
WAIT_RECORD = Target(
    "wait_record", read_wait_record, check_wait_record, wait_records, WAIT_RECORD_WORDS, records=True, share=2.0
)
DEAD_LETTER = Target("dead_letter", read_dead_letter, check_dead_letter, republished, FAILURE_WORDS, records=True)
TARGETS = (
    WAIT_RECORD,
    DEAD_LETTER,
    Target("tombstone", read_outcome, check_tombstone, tombstones, OUTCOME_WORDS, records=True, share=0.3),
    Target("lineage", read_lineage, check_lineage, republished, LINEAGE_WORDS, records=True),
    Target("consumed", read_consumed, check_consumed, republished, CONSUMED_WORDS, records=True),
    Target("trace_context", read_trace_context, check_trace_context, traced, TRACE_WORDS, records=True, share=0.4),
)
