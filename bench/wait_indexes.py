"""What an index on `wait` costs the sink: run `python bench/wait_indexes.py` with WAITREG_POSTGRES__URL set.

Fills a schema of its own with standing registrations, then applies the sink's own transactions (new waits of one batch,
tombstones of the batch before) with different sets of indexes, in turns. Prints for each set the medians of the time,
of the server's CPU time (which other work on the machine hardly changes; Linux, server on this host) and of the WAL,
with their ratios to the schema without any index for incidents. Takes some minutes; the schema is dropped at the end.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import statistics
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psycopg
import pyarrow as pa

from sink.batch import SCHEMA
from sink.progress import QUERIES
from sink.wait_writer import WaitBatch, WaitWriter
from wait_registry.postgres.connection import connect
from wait_registry.postgres.schema import install_schema
from wait_registry.records.original import Original
from wait_registry.records.tombstone import Outcome, tombstone_headers
from wait_registry.records.wait_record import WaitRecordEncoder
from wait_registry.settings.loading import load_settings
from wait_registry.settings.postgres import PostgresSettings

STANDING: Final = 1_000_000
BATCH: Final = 10_000
CYCLES: Final = 5
ROUNDS: Final = 2
SCHEMA_NAME: Final = "bench_wait_indexes"

CANDIDATES: Final = {
    "place": "create index bench_place on wait (original_offset, original_partition)",
    "key": "create index bench_key on wait (substring(original_key from 1 for 64))",
    "created": "create index bench_created on wait (created_at)",
    "instance": "create index bench_instance on wait (left(instance, 64))",
    "expiry": "create index bench_expiry on wait (wait_expiration_time)",
}
SETS: Final = ((), *((name,) for name in CANDIDATES), ("place", "key"), tuple(CANDIDATES))

FILL: Final = f"""
insert into wait (
    wait_expiration_uuid, original_topic, original_partition, original_offset, original_key, original_headers,
    wait_expiration_time, body, consumer_group, instance, delivery, wait_topic, wait_partition, wait_offset)
select
    md5(i::text)::uuid::text, 'orders', i % 12, i / 12, convert_to('customer-' || i % 200000, 'UTF8'), '[]',
    now() + make_interval(secs => i / 300), convert_to(repeat(md5(i::text), 8), 'UTF8'), 'billing',
    'host-' || i % 16, 1, 'wait', i % 8, i
from generate_series(1, {STANDING}) as i
"""
ENCODER: Final = WaitRecordEncoder("billing", "host-1-2026-11-21T02:20:00Z", "waitreg.dlq", "dlq", 3)
BODY: Final = b'{"order": 17, "customer": "customer-17", "lines": [' + b'{"sku": "a", "n": 1}, ' * 9 + b"null]}"

Record = tuple[bytes, bytes | None, int, int, list[tuple[str, bytes | None]]]


@dataclass(frozen=True, slots=True)
class Cost:
    """What one transaction took: time and the server's CPU time, ms, and WAL, kB."""

    wall_ms: float
    cpu_ms: float
    wal_kb: float


def main() -> None:
    """Print a line a set of indexes."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    given = load_settings({}, None).postgres
    settings = PostgresSettings(url=given.url, schema=SCHEMA_NAME)
    with connect(settings, autocommit=True, application_name="bench") as connection:
        connection.execute(f"drop schema if exists {SCHEMA_NAME} cascade".encode())
        try:
            prepare(connection)
            report(measured(connection))
        finally:
            connection.execute(f"drop schema {SCHEMA_NAME} cascade".encode())


def prepare(connection: psycopg.Connection[Any]) -> None:
    """Fill a schema that has the indexes of the pipeline alone."""
    print(f"filling {STANDING} rows", file=sys.stderr)
    install_schema(connection, SCHEMA_NAME)
    connection.execute("drop index wait_place; drop index wait_key")
    connection.execute(FILL.encode())
    connection.execute("vacuum analyze wait")
    connection.execute(QUERIES["stage"])


def measured(connection: psycopg.Connection[Any]) -> dict[tuple[str, ...], list[Cost]]:
    """Return the cost of each transaction by set of indexes."""
    costs: dict[tuple[str, ...], list[Cost]] = {chosen: [] for chosen in SETS}
    batches = endless_batches()
    for number in range(1, ROUNDS + 1):
        for chosen in SETS:
            print(f"round {number} of {ROUNDS}: {' + '.join(chosen) or 'no index'}", file=sys.stderr)
            for name in chosen:
                begun = time.perf_counter()
                connection.execute(CANDIDATES[name].encode())
                print(f"# built {name} on {STANDING} rows in {time.perf_counter() - begun:.1f} s", file=sys.stderr)
            connection.execute("vacuum wait")
            connection.execute("checkpoint")
            apply(connection, next(batches))
            costs[chosen] += [apply(connection, next(batches)) for _ in range(CYCLES)]
            for name in chosen:
                connection.execute(f"drop index bench_{name}".encode())
    return costs


def apply(connection: psycopg.Connection[Any], batch: WaitBatch) -> Cost:
    """Write one batch as the sink does."""
    begun, cpu, wal = time.perf_counter(), server_cpu_s(connection), wal_bytes(connection)
    with connection.transaction():
        WaitWriter("wait").write(connection, batch)
    return Cost(
        (time.perf_counter() - begun) * 1000,
        (server_cpu_s(connection) - cpu) * 1000,
        (wal_bytes(connection) - wal) / 1000,
    )


def server_cpu_s(connection: psycopg.Connection[Any]) -> float:
    """Return the CPU time that the connection's server process has used, s."""
    fields = Path(f"/proc/{connection.info.backend_pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wal_bytes(connection: psycopg.Connection[Any]) -> float:
    """Return how much WAL the server has written."""
    row = connection.execute("select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')").fetchone()
    assert row is not None
    return float(row[0])


def endless_batches() -> Iterator[WaitBatch]:
    """Yield batches of new waits and of the tombstones of the batch before."""
    offset = 10 * STANDING
    before: list[bytes] = []
    while True:
        ids = [str(uuid.UUID(bytes=hashlib.md5(b"%d" % (offset + i)).digest())).encode() for i in range(BATCH)]
        expires_ms = int(datetime.now(UTC).timestamp() * 1000) + 600_000
        records: list[Record] = [
            (key, None, i % 8, offset + i, tombstone_headers(Outcome.DONE)) for i, key in enumerate(before)
        ]
        for i, key in enumerate(ids):
            place = offset + BATCH + i
            original = Original(
                "orders", i % 12, place, expires_ms, "create", b"customer-%d" % (place % 200_000), BODY, ()
            )
            records.append((key, BODY, i % 8, place, ENCODER.headers(original, key.decode(), expires_ms)))
        yield WaitWriter("wait").prepare(table_of(records), {})
        before, offset = ids, offset + 2 * BATCH


def table_of(records: list[Record]) -> pa.Table:
    """Return records as Spark's source hands them to the sink."""
    rows = [
        (key, value, "wait", partition, offset, 1_000, [{"key": n, "value": v} for n, v in headers])
        for key, value, partition, offset, headers in records
    ]
    columns = zip(*rows, strict=True)
    return pa.table([pa.array(column, kind) for column, kind in zip(columns, SCHEMA.types, strict=True)], SCHEMA)


def report(costs: dict[tuple[str, ...], list[Cost]]) -> None:
    """Print the medians."""
    print(
        f"a transaction of {BATCH} new waits and {BATCH} tombstones, {STANDING} standing; median of {CYCLES * ROUNDS}"
    )
    print(f"{'':45} {'time':>16} {'server CPU':>16} {'WAL':>18}")
    for chosen in costs:
        cells = [
            f"{median(costs[chosen], name):9.0f} {unit} {median(costs[chosen], name) / median(costs[()], name):.2f}x"
            for name, unit in (("wall_ms", "ms"), ("cpu_ms", "ms"), ("wal_kb", "kB"))
        ]
        print(f"{' + '.join(chosen) or 'none of these':45} {' '.join(cells)}")


def median(costs: list[Cost], name: str) -> float:
    """Return the median of one figure."""
    return statistics.median(getattr(cost, name) for cost in costs)


if __name__ == "__main__":
    main()
