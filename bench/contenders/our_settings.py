"""The settings of the services under measurement: the product's defaults, with addresses and names of a turn."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow
from pydantic import SecretStr

from bench.contenders.wait_log import WaitLog
from bench.harness.row import Bench
from wait_registry.postgres.connection import connect
from wait_registry.postgres.schema import install_schema
from wait_registry.settings.kafka import KafkaSettings
from wait_registry.settings.postgres import PostgresSettings
from wait_registry.settings.root import Settings
from wait_registry.settings.runtime import TelemetrySettings
from wait_registry.settings.sink import SinkSettings
from wait_registry.settings.sweeper import SweeperSettings
from wait_registry.settings.topics import DeadLetterSettings, WaitTopicSettings

# A sweep is waited for: at the default of 30 s a measurement would be nothing but waiting.
SWEEP_INTERVAL_S = 1.0


def our_settings(bench: Bench, log: WaitLog, schema: str = "public") -> Settings:
    """Return settings of sink and sweeper: whatever isn't named here is the product's default.

    Args:
        bench: whose broker and Postgres.
        log: which wait topic.
        schema: which tables.
    """
    return Settings(
        kafka=KafkaSettings(bootstrap_servers=bench.kafka),
        wait=WaitTopicSettings(topic=log.topic, partitions=log.partitions, replication_factor=1, min_insync_replicas=1),
        dead_letter=DeadLetterSettings(topic=log.dead_letter_topic),
        postgres=PostgresSettings(url=SecretStr(bench.postgres_url), schema=schema),
        sink=SinkSettings(checkpoint_dir=str(bench.directory / "checkpoints")),
        sweeper=SweeperSettings(interval_s=SWEEP_INTERVAL_S),
        telemetry=TelemetrySettings(port=0),
    )


@contextmanager
def fresh_schema(bench: Bench, log: WaitLog) -> Iterator[Settings]:
    """Install a schema of a turn's own and drop it at the end; what was written before doesn't disturb the turn.

    A checkpoint that an earlier turn made necessary is written now, not in the middle of this one.
    """
    settings = our_settings(bench, log, f"bench_{uuid.uuid4().hex[:12]}")
    install(settings)
    try:
        yield settings
    finally:
        drop(settings)


def install(settings: Settings) -> None:
    """Make the schema that the settings name, as `waitreg db migrate` does, and write a checkpoint."""
    with connection_to(settings) as connection:
        install_schema(connection, settings.postgres.schema_name)
        connection.execute("checkpoint")


def drop(settings: Settings) -> None:
    """Drop the schema that the settings name, if it is there."""
    with connection_to(settings) as connection:
        name = sql.Identifier(settings.postgres.schema_name)
        connection.execute(sql.SQL("drop schema if exists {} cascade").format(name))


def connection_to(settings: Settings) -> psycopg.Connection[TupleRow]:
    """Open a connection to the tables that the settings name, in autocommit."""
    return connect(settings.postgres, autocommit=True, application_name="bench")
