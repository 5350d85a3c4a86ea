"""All checks of `waitreg doctor`: those that services make when they start, and further ones for operators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from wait_registry.diagnosis import Diagnosis
from wait_registry.kafka.broker_rules import ASK_FIX, VERSION_ID
from wait_registry.kafka.topic_specs import TopicUser
from wait_registry.settings.relations import Service
from wait_registry.settings.root import Settings
from waitreg.doctor import (
    certificates,
    clocks,
    disk,
    group,
    kafka_cluster,
    kafka_permissions,
    left_topics,
    operations,
    postgres_permissions,
    postgres_server,
    sweeps,
    tables,
    telemetry_port,
    versions,
)
from waitreg.doctor import settings as settings_checks
from waitreg.doctor.check import (
    EVERY,
    EXPORTING,
    PROCESSOR,
    REDRIVE,
    SPARK,
    SWEEPER,
    USES_POSTGRES,
    Check,
    Concerned,
    Notify,
    run_checks,
)

SERVICES: Final[tuple[Service, ...]] = ("processor", "sink", "sweeper")
_USE_KAFKA: Final[tuple[TopicUser, ...]] = (*SERVICES, "redrive")
_USE_TABLES: Final[tuple[TopicUser, ...]] = ("sink", "sweeper", "redrive")
_KAFKA: Final = "kafka.reachable"
_POSTGRES: Final = "postgres.reachable"
_SCHEMA: Final = "postgres.schema"


def check_all(
    settings: Settings, services: Sequence[Concerned], notify: Notify = lambda _: None
) -> Iterator[Diagnosis]:
    """Check everything that these services check when they start, and more; nothing is changed.

    Args:
        settings: what is checked.
        services: those whose needs are checked, with ``connect`` for a source in the sweeper's place.
        notify: gets a sentence if a check takes long.

    Yields:
        Diagnoses; an error that a check meets is one too, and none is raised.
    """
    wanted = (check for check in all_checks(services) if check.services & set(services))
    return run_checks(wanted, settings, notify)


def all_checks(services: Sequence[Concerned] = SERVICES) -> list[Check]:
    """List every check, those that others need first; some check for all these services at once."""
    return [*_host(services), *_kafka(services), *_postgres(), *_running()]


def _host(services: Sequence[Concerned]) -> Iterator[Check]:
    for name in SERVICES:
        look = partial(settings_checks.relations, name)
        yield Check(f"settings.{name}", f"settings of the {name}", look, frozenset({name}))
    yield Check("version.packages", "Python and Kafka client", versions.packages, EVERY | REDRIVE)
    yield Check("version.java", "Java", versions.java, SPARK, fix=versions.INSTALL_JAVA)
    yield Check("version.spark", "Spark", versions.spark, SPARK)
    yield Check("jars", "jars of Spark's Kafka source", versions.jars, SPARK, fix="`waitreg jars fetch`")
    yield Check("handler", "handler", settings_checks.handler, PROCESSOR, fix=settings_checks.HANDLER_FIX)
    ends = certificates.configured
    yield Check("certificate.configured", "certificates of the settings", ends, EVERY | REDRIVE, fix=certificates.FIX)
    yield Check("telemetry.port", "telemetry port", partial(telemetry_port.telemetry_port, services))
    yield Check("disk.spark", "disk for Spark's scratch", disk.spark, SPARK)


def _kafka(services: Sequence[Concerned]) -> Iterator[Check]:
    yield Check(_KAFKA, "Kafka", kafka_cluster.reach, EVERY | REDRIVE, fix=kafka_cluster.REACH_FIX)
    brokers = partial(kafka_cluster.brokers, services)
    yield Check(VERSION_ID, "Kafka version", brokers, EVERY | REDRIVE, (_KAFKA,), ASK_FIX)
    shown = "certificates of the brokers"
    yield Check("certificate.broker", shown, certificates.served, EVERY | REDRIVE, (_KAFKA,), certificates.SERVED_FIX)
    topics = partial(kafka_cluster.topics, services)
    yield Check("topic", "topics", topics, EVERY | REDRIVE, (_KAFKA,), kafka_permissions.FIX)
    for name in _USE_KAFKA:
        look, subject = partial(kafka_permissions.permissions, name), f"permissions in Kafka ({name})"
        fix = kafka_permissions.FIX
        yield Check(f"kafka.permissions.{name}", subject, look, frozenset({name}), (_KAFKA,), fix)
    yield Check(
        "kafka.permissions.transactions",
        "transactional ids of the sweeper",
        kafka_permissions.sweeper_transactions,
        SWEEPER,
        (_KAFKA,),
        kafka_permissions.FIX,
    )
    yield Check(
        "kafka.permissions.redrive.transactions",
        "transactional id of redrives",
        kafka_permissions.redrive_transactions,
        REDRIVE,
        (_KAFKA,),
        kafka_permissions.FIX,
    )
    yield Check("kafka.clock", "clock of the broker", clocks.broker_clock, needs=(_KAFKA, "topic.wait"), fix=clocks.FIX)


def _postgres() -> Iterator[Check]:
    readers = USES_POSTGRES | REDRIVE
    yield Check(_POSTGRES, "Postgres", postgres_server.reach, readers, fix=postgres_server.REACH_FIX)
    look, fix = postgres_server.session, postgres_server.SESSION_FIX
    yield Check("postgres.session", "sessions in Postgres", look, SPARK, (_POSTGRES,), fix)
    yield Check(_SCHEMA, "schema", postgres_server.schema, readers, (_POSTGRES,), postgres_server.SCHEMA_FIX)
    for name in _USE_TABLES:
        look, subject = partial(postgres_permissions.permissions, name), f"permissions in Postgres ({name})"
        fix = postgres_permissions.FIX
        yield Check(f"postgres.permissions.{name}", subject, look, frozenset({name}), (_POSTGRES,), fix)
    yield Check("postgres.clock", "clock of Postgres", clocks.postgres_clock, USES_POSTGRES, (_POSTGRES,), clocks.FIX)


def _running() -> Iterator[Check]:
    both = (_KAFKA, "topic.wait", _POSTGRES, _SCHEMA)
    yield Check("tables.position", "position of the tables", tables.position, USES_POSTGRES, both, tables.POSITION_FIX)
    operated = (_KAFKA, "topic.operations", _POSTGRES, _SCHEMA)
    where = "position in the operations topic"
    yield Check("tables.operations", where, operations.position, REDRIVE, operated, operations.FIX)
    yield Check("tables.freshness", "freshness of the tables", tables.freshness, USES_POSTGRES, (_POSTGRES, _SCHEMA))
    yield Check("sweep.due", "expired registrations", sweeps.due, EXPORTING, both)
    yield Check("sweep.last", "last sweep", sweeps.last, SWEEPER, (_POSTGRES, _SCHEMA))
    sound = (_KAFKA, "topic.wait", "topic.input", "topic.redelivery", "topic.retry")
    yield Check("group.offsets", "offsets of the group", group.group_offsets, PROCESSOR, sound, group.OFFSETS_FIX)
    yield Check("group.left", "topics that the group has left", left_topics.left, PROCESSOR, (_KAFKA,))
    kept = "how long the broker keeps offsets"
    yield Check("group.offsets.retention", kept, group.offsets_retention, PROCESSOR, (_KAFKA,))
