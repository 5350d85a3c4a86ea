"""Bytes a row takes in Postgres: run `python bench/postgres_rows.py` with WAITREG_POSTGRES__URL set.

Writes `waitreg load`'s orders into a schema of its own, as the sink does: as open registrations, as `failed` dead
letters with a stack trace, and as `expired` ones. Prints what table and indexes take a row, and drops the schema.
About a minute.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any, Final

import psycopg
import pyarrow as pa

from sink.batch import SCHEMA
from sink.dead_letter_writer import DeadLetterWriter
from sink.progress import QUERIES
from sink.wait_writer import WaitWriter
from wait_registry.demo.orders import ORDERS, order
from wait_registry.errors import PermanentError
from wait_registry.postgres.connection import connect
from wait_registry.postgres.schema import install_schema
from wait_registry.records.dead_letter import Failure, Reason, dead_letter_headers
from wait_registry.records.lineage import Lineage
from wait_registry.records.original import Original
from wait_registry.records.wait_id import wait_id
from wait_registry.records.wait_record import WaitRecordEncoder
from wait_registry.settings.loading import load_settings
from wait_registry.settings.postgres import PostgresSettings

ROWS: Final = 50_000
SCHEMA_NAME: Final = "bench_postgres_rows"
TIME_MS: Final = 1_795_227_600_123
CLUSTER: Final = "MkU3OEVBNTcwNTJENDM2Qg"
INSTANCE: Final = "host-1-20261121T022000.000Z"
ENCODER: Final = WaitRecordEncoder("billing", INSTANCE, "waitreg.dlq", "dlq", 3)

Record = tuple[bytes, bytes | None, list[tuple[str, bytes | None]]]


def main() -> None:
    """Print the table."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    settings = PostgresSettings(url=load_settings({}, None).postgres.url, schema=SCHEMA_NAME)
    with connect(settings, autocommit=True, application_name="bench") as connection:
        connection.execute(f"drop schema if exists {SCHEMA_NAME} cascade".encode())
        try:
            install_schema(connection, SCHEMA_NAME)
            connection.execute(QUERIES["stage"])
            title = f"bytes a row, values of {mean_value():.0f} bytes"
            print(f"{title:<40}{'table':>8}{'indexes':>8}")
            progress("registrations")
            write(connection, WaitWriter("wait"), [registration(index) for index in range(ROWS)])
            show(connection, "wait")
            for reason in (Reason.FAILED, Reason.EXPIRED):
                progress(f"{reason.value} dead letters")
                connection.execute("truncate dead_letter")
                write(connection, DeadLetterWriter(), [dead_letter(index, reason) for index in range(ROWS)])
                show(connection, "dead_letter", reason.value)
        finally:
            connection.execute(f"drop schema {SCHEMA_NAME} cascade".encode())


def progress(what: str) -> None:
    """Say what is being written, beside the table."""
    print(f"writing {ROWS} {what}", file=sys.stderr)


def mean_value() -> float:
    """Return the mean size of the values, bytes."""
    return sum(len(order(1, index, ORDERS).value or b"") for index in range(ROWS)) / ROWS


def original(index: int) -> Original:
    """Return an order as it was consumed."""
    made = order(1, index, ORDERS)
    return Original("orders", 3, index, TIME_MS + index, "create", made.key, made.value, tuple(made.headers))


def registration(index: int) -> Record:
    """Return the wait record of an order."""
    record, key = original(index), wait_id(CLUSTER, "orders", 3, index, "billing", TIME_MS + index)
    return key.encode(), record.value or b"", ENCODER.headers(record, key, TIME_MS + 600_000)


def dead_letter(index: int, reason: Reason) -> Record:
    """Return the dead letter of an order; a failed one has the stack trace of a short handler."""
    record, key = original(index), wait_id(CLUSTER, "orders", 3, index, "billing", TIME_MS + index)
    lineage = Lineage.of(
        record, wait_id=key, wait_partition=1, wait_offset=index, group="billing", instance=INSTANCE, delivery=1
    )
    failure = Failure(reason, None, None, None, TIME_MS)
    if reason is Reason.FAILED:
        try:
            raise PermanentError("the payment service refused with 422: card expired")
        except PermanentError as error:
            failure = Failure.from_exception(reason, error, TIME_MS)
    return record.key or b"", record.value, dead_letter_headers(record.headers, lineage, failure)


def write(connection: psycopg.Connection[Any], writer: Any, records: list[Record]) -> None:
    """Write one batch as the sink does."""
    rows = [
        (key, value, "waitreg.topic", 1, offset, TIME_MS, [{"key": name, "value": text} for name, text in headers])
        for offset, (key, value, headers) in enumerate(records)
    ]
    columns = zip(*rows, strict=True)
    table = pa.table([pa.array(column, kind) for column, kind in zip(columns, SCHEMA.types, strict=True)], SCHEMA)
    with connection.transaction():
        writer.write(connection, writer.prepare(table, {}))


def show(connection: psycopg.Connection[Any], table: str, detail: str = "") -> None:
    """Print what one row of a table takes."""
    found = connection.execute(
        "select count(*), pg_table_size(%s::regclass), pg_indexes_size(%s::regclass) from " + table, (table, table)
    ).fetchone()
    assert found is not None and found[0] == ROWS, f"{table} has {found} rows"
    print(f"{f'{table}, {detail}' if detail else table:<40}{found[1] / ROWS:>8.0f}{found[2] / ROWS:>8.0f}")


if __name__ == "__main__":
    main()
