"""What the default sink takes of large records: `python bench/large_records.py --kafka HOST:PORT --postgres URL`.

Writes wait records, or with --dead-letters dead letters, whose value is zeros: they pass every broker's limit, which
counts what is compressed. Then `waitreg sink --once` reads them all with the default settings, as its users do. Prints
how that ended and the rows that it made.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from typing import Final

import psycopg
from confluent_kafka import Producer
from psycopg import sql

from wait_registry.clock import SystemClock
from wait_registry.kafka.clients import producer_config
from wait_registry.records.dead_letter import Failure, Reason, dead_letter_headers
from wait_registry.records.lineage import Lineage
from wait_registry.records.original import Original
from wait_registry.records.wait_id import wait_id
from wait_registry.records.wait_record import WaitRecord, encode_wait_record
from wait_registry.settings.kafka import KafkaSettings

MIB: Final = 1024 * 1024
TTL_MS: Final = 3_600_000


def main() -> None:
    """Run as the module's docstring says."""
    options = _options()
    run = f"bench_{uuid.uuid4().hex[:12]}"
    environment = _environment(options, run)
    _waitreg(environment, "topics", "create")
    _waitreg(environment, "db", "migrate")
    topic = environment["WAITREG_DEAD_LETTER__TOPIC" if options.dead_letters else "WAITREG_WAIT__TOPIC"]
    _write(options, topic)
    began = time.monotonic()
    ended = _waitreg(environment, "sink", "--once", limit_s=options.limit_s)
    table = "dead_letter" if options.dead_letters else "wait"
    print(
        f"{options.records} records of {options.mebibytes} MiB in {topic.split('.')[-1]}: "
        f"{'done' if ended == 0 else f'ended with {ended}'} after {time.monotonic() - began:.0f} s, "
        f"{_rows(options.postgres, run, table)} rows",
        flush=True,
    )


def _waitreg(environment: Mapping[str, str], *arguments: str, limit_s: float = 120.0) -> int | str:
    command = [sys.executable, "-m", "wait_registry", *arguments]
    try:
        done = subprocess.run(
            command, env=dict(environment), timeout=limit_s, check=False, capture_output=True, text=True
        )
    except subprocess.TimeoutExpired:
        return "nothing: it was stopped"
    if done.returncode:
        print("\n".join(done.stderr.splitlines()[-1:]), file=sys.stderr)
    return done.returncode


def _environment(options: argparse.Namespace, run: str) -> dict[str, str]:
    return {
        **os.environ,
        "WAITREG_KAFKA__BOOTSTRAP_SERVERS": options.kafka,
        "WAITREG_POSTGRES__URL": options.postgres,
        "WAITREG_POSTGRES__SCHEMA": run,
        "WAITREG_WAIT__TOPIC": f"{run}.wait",
        "WAITREG_WAIT__REPLICATION_FACTOR": "1",
        "WAITREG_WAIT__MIN_INSYNC_REPLICAS": "1",
        "WAITREG_DEAD_LETTER__TOPIC": f"{run}.dlq",
        "WAITREG_TELEMETRY__PORT": "0",
    }


def _write(options: argparse.Namespace, topic: str) -> None:
    producer = Producer(producer_config(KafkaSettings(bootstrap_servers=options.kafka)))
    value = bytes(int(options.mebibytes * MIB))
    for offset in range(options.records):
        original = Original("input", 0, offset, SystemClock().now_ms(), "create", b"key", value, ())
        key, headers = (_dead_letter if options.dead_letters else _wait)(original)
        producer.produce(topic, value, key, headers=headers)
        producer.flush(60)


def _wait(original: Original) -> tuple[bytes, list[tuple[str, bytes | None]]]:
    now_ms = original.timestamp_ms
    key = wait_id("cluster", original.topic, original.partition, original.offset, "group", now_ms)
    record = WaitRecord(original, key, now_ms + TTL_MS, "group", "instance", 1, "dlq", "dlq", 1)
    return key.encode(), encode_wait_record(record)[1]


def _dead_letter(original: Original) -> tuple[bytes, list[tuple[str, bytes | None]]]:
    lineage = Lineage.of(
        original,
        wait_id=str(uuid.uuid4()),
        wait_partition=None,
        wait_offset=None,
        group="group",
        instance="instance",
        delivery=1,
    )
    failure = Failure(Reason.UNREGISTRABLE, "PermanentError", "too large", None, original.timestamp_ms)
    return b"key", dead_letter_headers((), lineage, failure)


def _rows(postgres: str, schema: str, table: str) -> int:
    with psycopg.connect(postgres) as connection:
        query = sql.SQL("select count(*) from {}").format(sql.Identifier(schema, table))
        row = connection.execute(query).fetchone()
    return 0 if row is None else int(row[0])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kafka", required=True, help="the broker's address")
    parser.add_argument("--postgres", required=True, help="the address of Postgres")
    parser.add_argument("--records", type=int, default=1)
    parser.add_argument("--mebibytes", type=float, default=16.0, help="size of each record's value")
    parser.add_argument("--dead-letters", action="store_true", help="dead letters instead of wait records")
    parser.add_argument("--limit-s", type=float, default=120.0, help="how long the sink may take, s")
    return parser.parse_args()


if __name__ == "__main__":
    main()
