"""Hypothesis strategies of records, made to provoke: names and values of the codec's own among the foreign ones."""

from __future__ import annotations

from hypothesis import strategies as st

from wait_registry.records import header_names
from wait_registry.records.dead_letter import Failure, Reason
from wait_registry.records.lineage import Lineage
from wait_registry.records.original import Original, Source
from wait_registry.records.times import MAX_TIME_MS, MIN_TIME_MS
from wait_registry.records.wait_record import WaitRecord

INT31 = st.integers(0, 2**31 - 1)
INT63 = st.integers(0, 2**63 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
ATTEMPTS = st.integers(1, 2**31 - 1)
TIMES_MS = st.integers(MIN_TIME_MS, MAX_TIME_MS)
TIMESTAMP_TYPES = st.sampled_from(["create", "append", "none"])
WAIT_IDS = st.uuids().map(str)
# What a text column of Postgres can hold: no NUL, no halves of surrogate pairs.
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=12)
BODIES = st.none() | st.binary(max_size=20)

_BLOCK_NAMES = st.sampled_from(sorted({header_names.WAIT_LINEAGE, *header_names.BLOCK_NAMES}))
# st.text alone hardly ever draws NUL or half of a surrogate pair.
_ODD_CHARACTERS = st.sampled_from(["a", "\u20ac", "\0", "\ud800", "\udfff", "\\", '"', "\n"])
ODD_TEXTS = st.lists(_ODD_CHARACTERS, max_size=6).map("".join)
HEADER_NAMES = st.text(max_size=6) | ODD_TEXTS | _BLOCK_NAMES | st.sampled_from(["traceparent", "tracestate"])
HEADER_VALUES = BODIES | st.integers(0, 12).map(lambda number: str(number).encode())
HEADERS = st.lists(st.tuples(HEADER_NAMES, HEADER_VALUES), max_size=8).map(tuple)

ORIGINALS = st.builds(Original, TEXTS, INT31, INT63, INT64, TIMESTAMP_TYPES, BODIES, BODIES, HEADERS)
SOURCES = st.builds(Source, TEXTS, INT31, INT63)
TRACES = st.none() | st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1, max_size=60)
WAIT_RECORDS = st.builds(
    WaitRecord,
    original=ORIGINALS,
    wait_id=WAIT_IDS,
    expires_at_ms=TIMES_MS,
    group=TEXTS,
    instance=TEXTS,
    delivery=ATTEMPTS,
    dead_letter_topic=TEXTS,
    expiry_policy=st.sampled_from(["dlq", "redeliver"]),
    max_deliveries=ATTEMPTS,
    redeliver_to=st.sampled_from([None, "origin"]),
    idempotency_key=st.none() | WAIT_IDS,
    source=st.none() | SOURCES,
    traceparent=TRACES,
    tracestate=TRACES,
)
LINEAGES = st.builds(
    Lineage,
    original_topic=TEXTS,
    original_partition=st.none() | INT31,
    original_offset=st.none() | INT63,
    original_timestamp_ms=st.none() | INT64,
    original_timestamp_type=st.none() | TIMESTAMP_TYPES,
    wait_id=WAIT_IDS,
    wait_partition=st.none() | INT31,
    wait_offset=st.none() | INT63,
    group=st.none() | TEXTS,
    instance=st.none() | TEXTS,
    delivery=st.none() | ATTEMPTS,
    max_deliveries=st.none() | ATTEMPTS,
    idempotency_key=st.none() | WAIT_IDS,
    source=st.none() | SOURCES,
)
FAILURES = st.builds(
    Failure,
    reason=st.sampled_from(Reason),
    error_class=st.none() | TEXTS,
    error_message=st.none() | TEXTS,
    error_stacktrace=st.none() | TEXTS,
    time_ms=TIMES_MS,
)
