"""The Python codec does what the golden vectors say."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import is_dataclass
from datetime import datetime
from typing import Any

import pytest

from sweeper.due import due_row
from sweeper.export_decision import Outgoing, Unsendable, outgoing
from tests.support.golden_vectors import FOLDER, Vector, binary, golden_vectors, headers_of
from tests.support.wait_record_encoding import encode_wait_record
from wait_registry.errors import ConfigurationError, DataError
from wait_registry.kafka.targets import Target
from wait_registry.records.consumed import consumed, idempotency_key
from wait_registry.records.dead_letter import (
    Failure,
    Reason,
    dead_letter_headers,
    dead_letter_topic,
    decode_dead_letter,
)
from wait_registry.records.headers import decode_headers_json, encode_headers_json
from wait_registry.records.lineage import Lineage, append_lineage, redelivery_headers, split_lineage
from wait_registry.records.operation import Event, decode_event, encode_event
from wait_registry.records.original import Original, Source
from wait_registry.records.times import format_utc_ms, parse_utc_ms
from wait_registry.records.tombstone import Outcome, decode_outcome, tombstone_headers
from wait_registry.records.topics import redelivery_topic
from wait_registry.records.wait_id import wait_id
from wait_registry.records.wait_record import WaitRecord, decode_wait_record
from wait_registry.settings.sweeper import SweeperSettings
from wait_registry.settings.tree import Settings


def plain(value: Any) -> Any:
    """Turn the codec's result into the form of a vector."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if hasattr(value, "_asdict"):
        return {name: plain(field) for name, field in value._asdict().items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {name: plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    return value


def lineage_of(fields: dict[str, Any]) -> Lineage:
    return Lineage(**{**fields, "source": source_of(fields["source"])})


def source_of(fields: dict[str, Any] | None) -> Source | None:
    return None if fields is None else Source(**fields)


def record_of(fields: dict[str, Any]) -> WaitRecord:
    return WaitRecord(**{**fields, "original": original_of(fields["original"]), "source": source_of(fields["source"])})


def original_of(fields: dict[str, Any]) -> Original:
    made = {name: binary(fields[name]) for name in ("key", "value")}
    return Original(**{**fields, **made, "headers": headers_of(fields["headers"])})


def run_encode_wait_record(given: Any) -> Any:
    record = record_of(given)
    value, headers = encode_wait_record(record)
    return {"key": record.wait_id, "value": plain(value), "headers": plain(headers)}


def run_consumed(given: Any) -> Any:
    given = {**given, "key": binary(given["key"]), "value": binary(given["value"])}
    return plain(consumed(**{**given, "headers": list(headers_of(given["headers"]))}))


def run_decode_record(given: Any) -> Any:
    return plain(decode_wait_record(binary(given["key"]), binary(given["value"]), headers_of(given["headers"])))


def run_split(given: Any) -> Any:
    headers, lineage, others = split_lineage(headers_of(given))
    return {"headers": plain(headers), "lineage": plain(lineage), "others": plain(others)}


def run_dead_letter(given: Any) -> Any:
    failure = Failure(**{**given["failure"], "reason": Reason(given["failure"]["reason"])})
    return plain(dead_letter_headers(headers_of(given["headers"]), lineage_of(given["lineage"]), failure))


def published(given: Any) -> Outgoing:
    """Return what the sweeper publishes for a row."""
    row = given["row"]
    columns = {
        **row,
        "original_key": binary(row["original_key"]),
        "body": binary(row["body"]),
        "wait_expiration_time": datetime.fromisoformat(row["wait_expiration_time"]),
        "expiry_policy": "dlq",
        "max_deliveries": None,
        "redeliver_to": None,
    }
    settings = Settings(sweeper=SweeperSettings(default_dead_letter_topic=given["template"], default_max_deliveries=1))
    decided = outgoing(due_row(columns), settings, lambda topic: Target(topic, 1, 1 << 30), given["now_ms"])
    if isinstance(decided, Unsendable):
        raise DataError(decided.reason)
    return decided


def blank_headers(size: int) -> bytes:
    return b"[" + b" " * (size - 2) + b"]"


def run_decode_column(size: int) -> Any:
    """Read them as a sweep reads a row."""
    given = next(golden_vectors("expired")).input
    row = {**given["row"], "original_headers": blank_headers(size).decode()}
    headers, _, _ = split_lineage(published({**given, "row": row}).headers)
    return plain(headers)


def run_expired_record(given: Any) -> Any:
    letter = published(given)
    return {
        "topic": letter.topic,
        "key": plain(letter.key),
        "value": plain(letter.value),
        "headers": plain(letter.headers),
    }


def run_expired_tombstone(given: Any) -> Any:
    letter = published(given)
    return {
        "topic": given["row"]["wait_topic"],
        "partition": letter.wait_partition,
        "key": plain(letter.wait_id.encode()),
        "value": None,
        "headers": plain(tombstone_headers(letter.outcome)),
    }


def event_of(given: Any) -> Event:
    return decode_event(json.dumps(given).encode())


RUNNERS: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("wait_id", "wait_id"): lambda given: wait_id(
        given["cluster_id"],
        (given["topic"], given["partition"], given["offset"]),
        given["group"],
        given["timestamp_ms"],
        binary(given.get("edit")),
    ),
    ("times", "parse"): parse_utc_ms,
    ("times", "format"): format_utc_ms,
    ("headers_json", "encode"): lambda given: plain(encode_headers_json(headers_of(given))),
    ("headers_json", "decode"): lambda given: plain(decode_headers_json(given.encode("latin-1"))),
    ("headers_json_size", "decode"): lambda size: plain(decode_headers_json(blank_headers(size))),
    ("headers_json_size", "decode_column"): run_decode_column,
    ("wait_record", "encode"): run_encode_wait_record,
    ("wait_record", "decode"): run_decode_record,
    ("wait_record_legacy", "decode"): run_decode_record,
    ("tombstone", "encode"): lambda given: plain(tombstone_headers(Outcome(given))),
    ("tombstone", "decode"): lambda given: decode_outcome(headers_of(given)),
    ("lineage", "append"): lambda given: plain(
        append_lineage(headers_of(given["headers"]), lineage_of(given["lineage"]))
    ),
    ("lineage", "split"): run_split,
    ("dead_letter", "encode"): run_dead_letter,
    ("dead_letter", "decode"): lambda given: plain(decode_dead_letter(headers_of(given))),
    ("dead_letter", "topic"): lambda given: dead_letter_topic(**given),
    ("redelivery", "encode"): lambda given: plain(
        redelivery_headers(headers_of(given["headers"]), lineage_of(given["lineage"]))
    ),
    ("redelivery", "topic"): lambda given: redelivery_topic(**given),
    ("redelivery", "consumed"): run_consumed,
    ("redelivery", "idempotency_key"): lambda given: idempotency_key(
        **{**given, "original": original_of(given["original"])}
    ),
    ("operation", "decode"): lambda given: json.loads(event_of(given).model_dump_json()),
    ("operation", "encode"): lambda given: json.loads(encode_event(event_of(given))),
    ("expired", "record"): run_expired_record,
    ("expired", "tombstone"): run_expired_tombstone,
}


VECTORS = [(path.stem, vector) for path in sorted(FOLDER.glob("*.json")) for vector in golden_vectors(path.stem)]


@pytest.mark.guarantee("P5.3")
@pytest.mark.parametrize(
    ("file", "vector"),
    VECTORS,
    ids=[f"{file}: {vector.operation} {ascii(vector.name)[1:-1]}" for file, vector in VECTORS],
)
def test_the_codec_does_what_the_vector_says(file: str, vector: Vector) -> None:
    run = RUNNERS[file, vector.operation]
    if vector.expected == "error":
        with pytest.raises((DataError, ConfigurationError)):
            run(vector.input)
    else:
        assert run(vector.input) == vector.expected


def test_every_operation_has_vectors() -> None:
    assert {(file, vector.operation) for file, vector in VECTORS} == set(RUNNERS)
