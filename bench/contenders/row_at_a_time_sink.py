"""The sink that many write by hand: a consumer, and for each record one statement, an upsert or a delete.

Polls of up to 500 records, one transaction per poll, offsets committed after it. `python -m
bench.contenders.row_at_a_time_sink GROUP` runs it by the settings in its environment; `measure` starts and watches that
process. The project's own codec reads the wait records, and psycopg prepares statements by itself.
"""

from __future__ import annotations

import signal
import sys
import threading
import uuid
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

import psycopg
from confluent_kafka import Consumer, KafkaException, Message
from psycopg import sql
from psycopg.rows import TupleRow

from bench.contenders.sink_pace import GroupWatch, measure_peer
from bench.contenders.wait_log import WaitLog
from bench.harness.process import started
from bench.harness.row import Bench, Figures
from wait_registry.demo.environment import as_environment
from wait_registry.kafka.clients import consumer_config
from wait_registry.postgres.connection import connect
from wait_registry.records.headers import encode_headers_json
from wait_registry.records.wait_record import decode_wait_record
from wait_registry.settings.loading import load_settings
from wait_registry.settings.root import Settings

APPLICATION: Final = "bench row at a time"
BATCH: Final = 500
POLL_S: Final = 0.1
DELETE: Final = "delete from wait where wait_expiration_uuid = %s"


def measure(log: WaitLog, bench: Bench) -> Figures:
    """Have this sink read a wait log; see `measure_peer`."""

    def read(settings: Settings) -> GroupWatch:
        group = f"bench-rows-{uuid.uuid4().hex[:12]}"
        command = [sys.executable, "-m", "bench.contenders.row_at_a_time_sink", group]
        with started(command, bench.directory, as_environment(settings), name="row-at-a-time") as child:
            watch = GroupWatch(settings, group, child.pid)
            watch.follow(log.records, child.require_running)
            child.stop()
            return watch

    return measure_peer(bench, log, APPLICATION, read)


def run(settings: Settings, group: str, stopping: threading.Event) -> None:
    """Write the tables until asked to stop, to the end of the batch then."""
    # What has been handed out is what the next commit is about.
    own = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.offset.store": True}
    consumer = Consumer(consumer_config(settings.kafka, **own))
    consumer.subscribe([settings.wait.topic])
    with connect(settings.postgres, autocommit=False, application_name=APPLICATION) as connection:
        while not stopping.is_set():
            messages = consumer.consume(BATCH, POLL_S)
            for message in messages:
                _write(connection, message)
            if messages:
                connection.commit()
                consumer.commit(asynchronous=False)
    consumer.close()


def _write(connection: psycopg.Connection[TupleRow], message: Message) -> None:
    if (error := message.error()) is not None:
        raise KafkaException(error)
    if message.value() is None:
        connection.execute(DELETE, ((message.key() or b"").decode(),))
    else:
        row = _row(message)
        connection.execute(_upsert(tuple(row)), row)


@cache
def _upsert(columns: tuple[str, ...]) -> sql.Composed:
    query = "insert into wait ({}) values ({}) on conflict (wait_expiration_uuid) do update set {}"
    changes = [sql.SQL("{0} = excluded.{0}").format(sql.Identifier(column)) for column in columns[1:]]
    parts = (map(sql.Identifier, columns), map(sql.Placeholder, columns), changes)
    return sql.SQL(query).format(*(sql.SQL(", ").join(part) for part in parts))


def _row(message: Message) -> dict[str, Any]:
    record = decode_wait_record(message.key(), message.value(), message.headers())
    original = record.original
    return {
        "wait_expiration_uuid": record.wait_id,
        "original_topic": original.topic,
        "original_partition": original.partition,
        "original_offset": original.offset,
        "original_key": original.key,
        "original_timestamp": _time(original.timestamp_ms),
        "original_timestamp_ms": original.timestamp_ms,
        "original_timestamp_type": original.timestamp_type,
        "original_headers": encode_headers_json(original.headers).decode(),
        "wait_expiration_time": _time(record.expires_at_ms),
        "body": original.value,
        "consumer_group": record.group,
        "instance": record.instance,
        "delivery": record.delivery,
        "dead_letter_topic": record.dead_letter_topic,
        "expiry_policy": record.expiry_policy,
        "max_deliveries": record.max_deliveries,
        "wait_topic": message.topic(),
        "wait_partition": message.partition(),
        "wait_offset": message.offset(),
    }


def _time(time_ms: int | None) -> datetime | None:
    return None if time_ms is None else datetime.fromtimestamp(time_ms / 1000, UTC)


if __name__ == "__main__":
    end = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: end.set())
    run(load_settings(), sys.argv[1], end)
