"""The fuzz targets: each reads bytes that another client or an operator may have written."""

from __future__ import annotations

import json
import os
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sweeper.due import DueRow
from sweeper.export_decision import Outgoing, Unsendable, outgoing
from tests.fuzz import sink_batch
from tests.fuzz.inputs import RECORD_WORDS, RecordInput, golden_records
from tests.support.golden_vectors import golden_vectors
from tests.support.wait_record_encoding import encode_wait_record
from wait_registry.errors import ConfigurationError, DataError
from wait_registry.kafka.targets import Target as Topic
from wait_registry.records.consumed import Consumed, consumed
from wait_registry.records.dead_letter import dead_letter_headers, decode_dead_letter
from wait_registry.records.headers import Headers, decode_headers_json, encode_headers_json
from wait_registry.records.lineage import split_lineage
from wait_registry.records.tombstone import Outcome
from wait_registry.records.wait_record import ExpiryRule, WaitRecord, WaitRecordEncoder, decode_wait_record
from wait_registry.settings.loading import load_settings
from wait_registry.settings.processor import ExpiryPolicy
from wait_registry.settings.sweeper import SweeperSettings
from wait_registry.settings.tree import Settings

GROUP: Final = "billing"
WAIT_ID: Final = "019fc448-d29b-8abc-9def-0123456789ab"
ENCODER: Final = WaitRecordEncoder(GROUP, "host-1", "waitreg.dlq", ExpiryRule("redeliver", 3))
NOW_MS: Final = 1_795_227_600_123
DEFAULTS: Final = tuple(
    Settings(
        sweeper=SweeperSettings(
            default_dead_letter_topic=template, default_expiry_policy=policy, default_max_deliveries=most
        )
    )
    for template, policy, most in (
        ("{topic}.{group}.dlq", ExpiryPolicy.REDELIVER, 3),
        ("waitreg.dlq", ExpiryPolicy.DLQ, 1),
    )
)
SECRET: Final = "s3cr3t-word"
# An object is 56 bytes at least and "[]," takes three in JSON; what a first call imports and caches is in the base.
BYTES_PER_BYTE: Final = 64
BASE_BYTES: Final = 2 * 1024 * 1024
# Far above what is ever seen: what it finds is time that grows with the square of the input, or a hang.
SECONDS_PER_BYTE: Final = 1e-5
BASE_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class Target:
    """A reader, what it must do with any bytes, and where to begin.

    Args:
        read: the product alone, its own refusals caught; time and memory are measured on it.
        check: raises AssertionError, or whatever the product raised, for a fault.
        seeds: inputs to begin with.
        words: worth putting in.
        share: of the time, in comparison with others.
    """

    read: Callable[[bytes], object]
    check: Callable[[bytes], object]
    seeds: Callable[[], Iterable[bytes]]
    words: tuple[bytes, ...] = ()
    share: float = 1.0

    def require_bounded(self, data: bytes) -> None:
        """Read an input and measure it.

        Raises:
            AssertionError: it took more than its size allows.
        """
        tracemalloc.start()
        try:
            began = time.process_time()
            self.read(data)
            took_s = time.process_time() - began
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak <= BASE_BYTES + BYTES_PER_BYTE * len(data), f"{peak} bytes of memory for {len(data)} of input"
        assert took_s <= BASE_SECONDS + SECONDS_PER_BYTE * len(data), f"{took_s:.2f} s for {len(data)} bytes"


# ---- texts


def read_headers(data: bytes) -> Headers | None:
    try:
        return decode_headers_json(data)
    except DataError as error:
        assert len(str(error)) < 500, "a refusal that quotes its input"
        return None


def check_headers(data: bytes) -> None:
    """Any bytes are headers or refused, and what was read is written back."""
    headers = read_headers(data)
    if headers is not None:
        encoded = encode_headers_json(headers)
        assert decode_headers_json(encoded) == headers, "not as it was written"
        names = [text for pair in json.loads(encoded) for text in pair if isinstance(text, str)]
        assert all("\0" not in name for name in names), "what jsonb doesn't hold"


def headers_json() -> Iterator[bytes]:
    for vector in golden_vectors("headers_json"):
        if vector.operation == "decode":
            yield vector.input.encode("latin-1")
    yield b"[" * 1100 + b"]" * 1100
    yield b'{"a":' * 200 + b"1" + b"}" * 200
    yield b'{"a":"1","a":null,"b":"\\u00e9","a":"2"}'
    yield b'[["\\ud800","AA=="]]'
    yield b'[[{"base64":"7aCA"},"AB=="]]'
    yield b"[1e400,1" + b"0" * 400 + b"]"


def read_settings(data: bytes) -> Settings | None:
    """Any text is settings, or refused with what to fix."""
    file = Path(tempfile.gettempdir(), f"waitreg-fuzz-{os.getpid()}.toml")
    file.write_bytes(data)
    try:
        return load_settings(config_file=file, env={"WAITREG_KAFKA__SECURITY__PASSWORD": SECRET})
    except ConfigurationError as error:
        assert str(error) and SECRET not in str(error), "a refusal that says nothing, or too much"
        return None
    finally:
        file.unlink()


def settings_files() -> Iterator[bytes]:
    yield b'[kafka]\nbootstrap_servers = "localhost:9092"\n[kafka.librdkafka]\nsocket.timeout.ms = 1\n'
    yield b'[processor]\ntopics = ["orders"]\ngroup = "billing"\nhandler_timeout_s = 1e3\n[log]\nformat = "json"\n'
    yield b'postgres.url = "postgresql://u:p@h/d"\nwait.partitions = 99999999999999999999\nwait.topic = "\\u0000"\n'
    yield b'kafka.security.password_file = "missing"\n[spark.conf]\n"a.b" = true\nx = 2026-11-21T02:20:00Z\n'


# ---- records


def decoded(data: bytes) -> WaitRecord | None:
    """Read a wait record; None when it is refused."""
    try:
        return decode_wait_record(*RecordInput.of(data))
    except DataError as error:
        assert len(str(error)) < 1000, "a refusal that quotes its input"
        return None


def read_wait_record(data: bytes) -> list[Outgoing | Unsendable]:
    """Read a wait record, and decide what the sweeper sends when it expires."""
    if (record := decoded(data)) is None:
        return []
    row = DueRow(record, 3, 41)
    return [outgoing(row, settings, lambda topic: Topic(topic, 8, 1 << 20), NOW_MS) for settings in DEFAULTS]


def check_wait_record(data: bytes) -> None:
    """Any record is read, or refused in few words; what was read is written back the same, and sent or unsendable."""
    if (record := decoded(data)) is None:
        return
    value, headers = encode_wait_record(record)
    assert decode_wait_record(record.wait_id.encode(), value, headers) == record, "not as it was written"
    for decided in read_wait_record(data):
        if isinstance(decided, Unsendable):
            assert decided.reason and len(decided.reason) < 10_000
            continue
        assert decided.topic and (decided.key, decided.value) == (record.original.key, record.original.value)
        assert all("\0" not in name and name.encode() is not None for name, _ in decided.headers), "an unsendable name"
        if decided.outcome is Outcome.EXPIRED:
            letter = decode_dead_letter(decided.headers)
            assert letter.headers == record.original.headers and letter.lineage is not None, "not a dead letter"
        else:
            originals, lineage, _ = split_lineage(decided.headers)
            assert originals == record.original.headers and lineage is not None, "not a redelivery"
            assert lineage.delivery == (record.delivery or 1) + 1, "counted differently"


def wait_records() -> Iterator[bytes]:
    """Yield the golden wait records of both dialects."""
    return golden_records("wait_record", "wait_record_legacy")


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


def republished() -> Iterator[bytes]:
    """Yield the golden records that end in a lineage block, or nearly."""
    return golden_records("lineage", "redelivery", "dead_letter")


def read_consumed(data: bytes) -> Consumed:
    return consumed("orders", 3, 41, NOW_MS, "create", *RecordInput.of(data), GROUP, "orders", True)


def check_consumed(data: bytes) -> None:
    """Whatever headers a consumed record has, it is worked on, and no header is lost."""
    given = RecordInput.of(data)
    original, source, delivery, *_ = read_consumed(data)
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


JSON_WORDS: Final = (*rb'[[" ",null] {"base64":" AA== \u0000 \ud83d\ude00 1e999 null'.split(), b"\xef\xbb\xbf")
TOML_WORDS: Final = (
    *(b"[kafka]\n", b"[processor]\n", b"[[wait]]\n", b"_file = ", b"max_in_flight = "),
    *b'nan -inf 0x10 """'.split(),
)
WAIT_RECORD_WORDS: Final = (
    *RECORD_WORDS,
    *(WAIT_ID.encode(), b"2026-11-21T02:20:00.123Z", b"append", b"true", b'[["a","AA=="]]', b'{"a":"b"}'),
    *b"redeliver {topic} a/b T00:00 +18:00 -00:00:01 [UTC] -02-29T 2147483646 2147483648".split(),
    *(b"9223372036854775807", b"-9223372036854775808"),
)
DEAD_LETTER_WORDS: Final = (*RECORD_WORDS, b"failed", b"malformed", b"2026-11-21T02:20:00.123Z", b"\xff\0")
CONSUMED_WORDS: Final = (*RECORD_WORDS, GROUP.encode(), b"0", b"1", b"12", b"-1", b"00", b"2147483647")
BATCH_WORDS: Final = (*RECORD_WORDS, sink_batch.CUT, WAIT_ID.encode(), b"2026-11-21T02:20:00.123Z", b"done")
TARGETS: Final = {
    "headers_json": Target(read_headers, check_headers, headers_json, JSON_WORDS),
    "settings_file": Target(read_settings, read_settings, settings_files, TOML_WORDS, 0.6),
    "wait_record": Target(read_wait_record, check_wait_record, wait_records, WAIT_RECORD_WORDS, 2.0),
    "dead_letter": Target(read_dead_letter, check_dead_letter, republished, DEAD_LETTER_WORDS),
    "consumed": Target(read_consumed, check_consumed, republished, CONSUMED_WORDS),
    "sink_batch": Target(sink_batch.read, sink_batch.check, sink_batch.batches, BATCH_WORDS, 2.0),
}
