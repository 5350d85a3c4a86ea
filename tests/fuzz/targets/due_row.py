"""From a wait record that the sink took to what the sweeper publishes: sent, or unsendable with a reason."""

from __future__ import annotations

from datetime import timedelta

import orjson

from sweeper.due import EPOCH, due_row
from sweeper.export_decision import Outgoing, Policy, Unsendable, outgoing
from tests.fuzz.record_bytes import RecordInput
from tests.fuzz.target import Target
from tests.fuzz.targets.records import decoded, wait_records
from wait_registry.kafka.targets import Target as Topic
from wait_registry.records.dead_letter import decode_dead_letter
from wait_registry.records.headers import encode_headers_json
from wait_registry.records.lineage import split_lineage
from wait_registry.records.original import Source
from wait_registry.records.tombstone import Outcome
from wait_registry.records.wait_record import WaitRecord

POLICIES = (Policy(False, "{topic}.{group}.dlq", True, 3), Policy(True, "waitreg.dlq", False, 1))
NOW_MS = 1_795_227_600_123


def _read(data: bytes) -> list[Outgoing | Unsendable]:
    record = decoded(RecordInput.of(data))
    if record is None:
        return []
    row = due_row(_columns(record))
    return [outgoing(row, policy, lambda topic: Topic(topic, 8, 1 << 20), NOW_MS) for policy in POLICIES]


def _check(data: bytes) -> None:
    record = decoded(RecordInput.of(data))
    for decided in _read(data):
        assert record is not None
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


def _columns(record: WaitRecord) -> dict[str, object]:
    """Return the row that Postgres gives back for a record; jsonb puts a blank behind commas and colons."""
    original = record.original
    headers = orjson.loads(encode_headers_json(original.headers))
    return {
        **{f"original_{name}": getattr(original, name) for name in ("topic", "partition", "offset", "key")},
        **{f"original_{name}": getattr(original, name) for name in ("timestamp_ms", "timestamp_type")},
        "original_headers": orjson.dumps(headers).decode(),
        "wait_expiration_time": EPOCH + timedelta(milliseconds=record.expires_at_ms),
        "body": original.value,
        "consumer_group": record.group,
        **{name: getattr(record, name) for name in ("instance", "delivery", "dead_letter_topic", "expiry_policy")},
        "max_deliveries": record.max_deliveries,
        "idempotency_key": record.idempotency_key or record.wait_id,
        **{f"source_{name}": getattr(record.source, name, None) for name in Source._fields},
        "wait_expiration_uuid": record.wait_id,
        "wait_partition": 3,
        "wait_offset": 41,
    }


WORDS = (b"redeliver", b"2147483646", b"2147483647", b"{topic}", b"a/b")
TARGET = Target("due_row", _read, _check, wait_records, WORDS, records=True)
