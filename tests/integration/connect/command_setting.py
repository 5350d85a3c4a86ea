"""What the tests of `waitreg connect` need: a sink connector of ours under a name of its own, and wait records."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

from tests.support.kafka_io import Outgoing
from tests.support.topics import Topics
from tests.support.wait_record_encoding import encode_wait_record
from wait_registry.cli.connect.connector_file import own_files
from wait_registry.records.original import Original
from wait_registry.records.wait_record import WaitRecord
from wait_registry.settings.root import Settings

HOUR_MS = 3_600_000


def own_sink_file(folder: Path, name: str, **changes: str) -> Path:
    """Write a copy of this project's file for the sink of the wait topic.

    Args:
        folder: where to.
        name: of the connector.
        changes: properties with other values; dots in their names are double underscores.
    """
    document = json.loads(own_files("sink", "debezium")[0].read_text("utf-8"))
    document["name"] = name
    document["config"] |= {key.replace("__", "."): value for key, value in changes.items()}
    file = folder / f"{name}.json"
    file.write_text(json.dumps(document), "utf-8")
    return file


def register(topics: Topics, settings: Settings) -> str:
    """Write a wait record as a processor does; returns its id."""
    wait_id = str(uuid.uuid4())
    record = WaitRecord(
        original=Original("orders", 0, 0, 1_700_000_000_000, "create", b"key", b"ok", ()),
        wait_id=wait_id,
        expires_at_ms=time.time_ns() // 1_000_000 + HOUR_MS,
        group="orders",
        instance="host-1",
        delivery=1,
        dead_letter_topic=settings.dead_letter.topic,
        expiry_policy="dlq",
        max_deliveries=3,
    )
    value, headers = encode_wait_record(record)
    topics.produce(settings.wait.topic, [Outgoing(value, wait_id.encode(), headers)])
    return wait_id


def connect_settings(url: str, more: Mapping[str, object]) -> dict[str, object]:
    """Return overrides that point `waitreg connect` to a worker, with a Connect sink in our sink's place."""
    return {"connect.url": url, "sink.kind": "connect", **more}
