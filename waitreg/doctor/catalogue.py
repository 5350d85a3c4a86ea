"""All checks of `waitreg doctor`: those that services make when they start, and further ones for operators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from wait_registry.diagnosis import Diagnosis, ok
from wait_registry.kafka.broker_rules import ASK_FIX, VERSION_ID
from wait_registry.kafka.topic_specs import TopicUser
from wait_registry.settings.relations import Service, relation_problems
from wait_registry.settings.tree import Settings
from waitreg.doctor import certificates, clocks, group, handler, kafka_cluster, kafka_permissions, machine
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
_SET: Final = "change one of them in waitreg.toml, or by its variable, which `waitreg config --all` lists"
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
    return [*_machine(services), *_kafka(services), *_postgres(), *_group()]


def _machine(services: Sequence[Concerned]) -> Iterator[Check]:
    for name in SERVICES:
        look = partial(_relations, name)
        yield Check(f"settings.{name}", f"settings of the {name}", look, frozenset({name}))
    yield Check("version.packages", "Python and Kafka client", machine.packages, EVERY | REDRIVE)
    yield Check("version.java", "Java", machine.java, SPARK, fix=machine.INSTALL_JAVA)
    yield Check("version.spark", "Spark", machine.spark, SPARK)
    yield Check("jars", "jars of Spark's Kafka source", machine.jars, SPARK, fix="`waitreg jars fetch`")
    yield Check("handler", "handler", handler.handler, PROCESSOR, fix=handler.HANDLER_FIX)
    ends = certificates.configured
    yield Check("certificate.configured", "certificates of the settings", ends, EVERY | REDRIVE, fix=certificates.FIX)
    yield Check("telemetry.port", "telemetry port", partial(machine.telemetry_port, services))
    yield Check("disk.spark", "disk for Spark's scratch", machine.disk, SPARK)


def _kafka(services: Sequence[Concerned]) -> Iterator[Check]:
    yield Check(_KAFKA, "Kafka", kafka_cluster.reach, EVERY | REDRIVE, fix=kafka_cluster.REACH_FIX)
    brokers = partial(kafka_cluster.brokers, services)
    yield Check(VERSION_ID, "Kafka version", brokers, EVERY | REDRIVE, (_KAFKA,), ASK_FIX)
    shown = "certificates of the brokers"
    yield Check("certificate.broker", shown, certificates.served, EVERY | REDRIVE, (_KAFKA,), certificates.SERVED_FIX)
    topics = partial(kafka_cluster.topics, services)
    yield Check("topic", "topics", topics, EVERY | REDRIVE, (_KAFKA,), kafka_permissions.FIX)
    fix = kafka_permissions.FIX
    for name in _USE_KAFKA:
        look, subject = partial(kafka_permissions.permissions, name), f"permissions in Kafka ({name})"
        yield Check(f"kafka.permissions.{name}", subject, look, frozenset({name}), (_KAFKA,), fix)
    swept, redriven = "transactional ids of the sweeper", "transactional id of redrives"
    sweeps, redrives = kafka_permissions.sweeper_transactions, kafka_permissions.redrive_transactions
    yield Check("kafka.permissions.transactions", swept, sweeps, SWEEPER, (_KAFKA,), fix)
    yield Check("kafka.permissions.redrive.transactions", redriven, redrives, REDRIVE, (_KAFKA,), fix)
    yield Check("kafka.clock", "clock of the broker", clocks.broker_clock, needs=(_KAFKA, "topic.wait"), fix=clocks.FIX)


def _group() -> Iterator[Check]:
    sound = (_KAFKA, "topic.wait", "topic.input", "topic.redelivery", "topic.retry")
    yield Check("group.offsets", "offsets of the group", group.group_offsets, PROCESSOR, sound, group.OFFSETS_FIX)
    yield Check("group.left", "topics that the group has left", group.left, PROCESSOR, (_KAFKA,))
    kept = "how long the broker keeps offsets"
    yield Check("group.offsets.retention", kept, group.offsets_retention, PROCESSOR, (_KAFKA,))


def _postgres() -> Iterator[Check]:
    readers = USES_POSTGRES | REDRIVE
    try:
        # The extra with psycopg may be missing; then that is what the checks of Postgres find.
        from waitreg.doctor import postgres, sweeps, tables
    except ImportError as absence:
        yield Check(_POSTGRES, "Postgres", partial(_without_extra, absence), readers)
        return
    yield Check(_POSTGRES, "Postgres", postgres.reach, readers, fix=postgres.REACH_FIX)
    sessions = "sessions in Postgres"
    yield Check("postgres.session", sessions, postgres.session, SPARK, (_POSTGRES,), postgres.SESSION_FIX)
    yield Check(_SCHEMA, "schema", postgres.schema, readers, (_POSTGRES,), postgres.SCHEMA_FIX)
    for name in _USE_TABLES:
        look, subject = partial(postgres.permissions, name), f"permissions in Postgres ({name})"
        fix = postgres.PERMISSIONS_FIX
        yield Check(f"postgres.permissions.{name}", subject, look, frozenset({name}), (_POSTGRES,), fix)
    yield Check("postgres.clock", "clock of Postgres", postgres.clock, USES_POSTGRES, (_POSTGRES,), clocks.FIX)
    schema, both = (_POSTGRES, _SCHEMA), (_KAFKA, "topic.wait", _POSTGRES, _SCHEMA)
    yield Check("tables.position", "position of the tables", tables.position, USES_POSTGRES, both, tables.POSITION_FIX)
    operated, where = (_KAFKA, "topic.operations", *schema), "position in the operations topic"
    yield Check("tables.operations", where, tables.operations, REDRIVE, operated, tables.OPERATIONS_FIX)
    yield Check("tables.freshness", "freshness of the tables", tables.freshness, USES_POSTGRES, schema)
    yield Check("sweep.due", "expired registrations", sweeps.due, EXPORTING, both)
    yield Check("sweep.last", "last sweep", sweeps.last, SWEEPER, schema)


def _without_extra(absence: ImportError, _settings: Settings) -> Iterator[Diagnosis]:
    raise absence


def _relations(service: Service, settings: Settings) -> Iterator[Diagnosis]:
    """Yield every contradiction among the settings of this service, or one diagnosis that there is none."""
    problems = relation_problems(settings, service)
    yield from (replace(problem, fix=_SET) for problem in problems)
    if not problems:
        yield ok("no contradictions")
