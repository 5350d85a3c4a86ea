"""What must come of a registration: its row, and its dead letter byte for byte; not encoded by the project."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.integration.connect.golden_corpus import Registration
from tests.support.kafka_io import Headers, ReadRecord

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Years 1 to 9999; no timestamp is -1.
SHOWN_MS = (-62_135_596_800_000, 253_402_300_800_000)

# Times in ms, so that no client's idea of a time zone comes in.
SELECT_ROWS = """
select
    wait_expiration_uuid, original_topic, original_partition, original_offset, original_key,
    (extract(epoch from original_timestamp) * 1000)::bigint as original_timestamp, original_timestamp_ms,
    original_timestamp_type, original_headers,
    (extract(epoch from wait_expiration_time) * 1000)::bigint as wait_expiration_time, body, consumer_group, instance,
    delivery, dead_letter_topic, expiry_policy, max_deliveries, idempotency_key, wait_topic, wait_partition,
    wait_offset, source_topic, source_partition, source_offset, traceparent, tracestate
from wait
"""


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter without what may differ: where in its topic it stands, and when it was written (DLQ_TIME)."""

    key: bytes | None
    value: bytes | None
    headers: Headers

    @classmethod
    def read(cls, record: ReadRecord) -> Letter:
        """Take one from its topic."""
        name, _ = record.headers[-1]
        assert name == "DLQ_TIME", f"the last header is {name}"
        return cls(record.key, record.value, record.headers[:-1])


def expected_row(registration: Registration, topic: str, partition: int, offset: int) -> dict[str, Any]:
    """Return the row of the table ``wait`` as `SELECT_ROWS` shows it, for a wait record that stands there."""
    record, original = registration.record, registration.record.original
    source = record.source
    shown = original.timestamp_ms is not None and SHOWN_MS[0] <= original.timestamp_ms < SHOWN_MS[1]
    same = ("instance", "delivery", "dead_letter_topic", "expiry_policy", "max_deliveries", "traceparent", "tracestate")
    of_original = ("topic", "partition", "offset", "key", "timestamp_ms", "timestamp_type")
    return {
        **{f"original_{name}": getattr(original, name) for name in of_original},
        "original_timestamp": original.timestamp_ms if shown and original.timestamp_ms != -1 else None,
        "original_headers": [[_name(name), _base64(value)] for name, value in original.headers],
        "body": original.value,
        **{f"source_{name}": getattr(source, name, None) for name in ("topic", "partition", "offset")},
        **{name: getattr(record, name) for name in same},
        "wait_expiration_uuid": record.wait_id,
        "idempotency_key": record.idempotency_key or record.wait_id,
        "wait_expiration_time": record.expires_at_ms,
        "consumer_group": record.group,
        "wait_topic": topic,
        "wait_partition": partition,
        "wait_offset": offset,
    }


def expected_letter(registration: Registration, partition: int, offset: int) -> Letter:
    """Return the `expired` dead letter of a wait record that stood there."""
    record, original = registration.record, registration.record.original
    instance, group = record.instance or "unknown", record.group or "unknown"
    message = (
        f"no outcome by {_utc(record.expires_at_ms)}; registered by instance {instance} of group {group}, "
        f"delivery {record.delivery or 1}"
    )
    block = {
        "WAIT_LINEAGE": len(original.headers),
        "ORIGINAL_TOPIC": original.topic,
        "ORIGINAL_PARTITION": original.partition,
        "ORIGINAL_OFFSET": original.offset,
        "ORIGINAL_TIMESTAMP": original.timestamp_ms,
        "ORIGINAL_TIMESTAMP_TYPE": original.timestamp_type,
        "WAIT_EXPIRATION_UUID": record.wait_id,
        "WAIT_PARTITION": partition,
        "WAIT_OFFSET": offset,
        "WAIT_GROUP": record.group,
        "WAIT_INSTANCE": record.instance,
        "WAIT_DELIVERY": record.delivery,
        "WAIT_IDEMPOTENCY_KEY": record.idempotency_key,
        **{
            f"SOURCE_{name.upper()}": value
            for name, value in (record.source._asdict() if record.source else {}).items()
        },
        "DLQ_REASON": "expired",
        "DLQ_ERROR_CLASS": "WaitExpired",
        "DLQ_ERROR_MESSAGE": message,
    }
    headers = [(name, str(text).encode()) for name, text in block.items() if text is not None]
    return Letter(original.key, original.value, (*original.headers, *headers))


def _utc(time_ms: int) -> str:
    return (EPOCH + timedelta(milliseconds=time_ms)).strftime("%Y-%m-%dT%H:%M:%S.") + f"{time_ms % 1000:03d}Z"


def _base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _name(name: str) -> str | dict[str, str]:
    plain = "\0" not in name and not any("\ud800" <= letter <= "\udfff" for letter in name)
    return name if plain else {"base64": base64.b64encode(name.encode("utf-8", "surrogatepass")).decode()}
