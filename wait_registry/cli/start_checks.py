"""Everything a service looks at before it starts, and what an operator looks at besides: the list of all checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from wait_registry.cli.checks import (
    clocks,
    disk,
    group,
    handler,
    kafka_cluster,
    kafka_permissions,
    postgres_permissions,
    postgres_server,
    settings_relations,
    sweeps,
    tables,
    telemetry_port,
    versions,
)
from wait_registry.cli.checks.check import EXPORTING, PROCESSOR, SINK, SPARK, SWEEPER, VIEWING, Check, Concerned
from wait_registry.cli.checks.running import run_checks
from wait_registry.diagnosis import Diagnosis

if TYPE_CHECKING:
    from wait_registry.settings.relations import Service
    from wait_registry.settings.root import Settings

SERVICES: Final[tuple[Service, ...]] = ("processor", "sink", "sweeper")
CONCERNED: Final[tuple[Concerned, ...]] = (*SERVICES, "connect")
_KAFKA: Final = "kafka.reachable"
_POSTGRES: Final = "postgres.reachable"
_SCHEMA: Final = "postgres.schema"


def check_all(
    settings: Settings, services: Sequence[Concerned], tell: Callable[[str], None] = lambda _: None
) -> Iterator[Diagnosis]:
    """Yield a line for everything that these services check when they start and more; nothing is changed by it.

    With ``connect`` among them for what exports in the sweeper's place. What a check meets is its line; nothing is
    raised for what a user can fix. ``tell`` gets a sentence when a check takes long.
    """
    wanted = (check for check in all_checks(services) if check.services & set(services))
    return run_checks(wanted, settings, tell)


def all_checks(services: Sequence[Concerned] = SERVICES) -> list[Check]:
    """List every check there is, what others need before them; some look for all these services at once."""
    return [*_host(services), *_kafka(services), *_postgres(), *_at_work()]


def _host(services: Sequence[Concerned]) -> Iterator[Check]:
    for name in SERVICES:
        look = partial(settings_relations.relations, name)
        yield Check(f"settings.{name}", f"settings of the {name}", look, frozenset({name}))
    yield Check("version.python", "Python", versions.python)
    yield Check(
        "version.kafka_client", "Kafka client", versions.kafka_client, fix="pip install --upgrade wait-registry"
    )
    yield Check("version.java", "Java", versions.java, SPARK, fix=versions.INSTALL_JAVA)
    yield Check("version.spark", "Spark", versions.spark, SPARK, fix=versions.INSTALL_SPARK)
    yield Check("jars", "jars of Spark's Kafka source", versions.jars, SPARK, fix="`waitreg jars fetch` or `make jars`")
    yield Check("handler", handler.SUBJECT, handler.handler, PROCESSOR, fix=handler.FIX)
    yield Check("telemetry.port", telemetry_port.SUBJECT, partial(telemetry_port.telemetry_port, services))
    yield Check("disk.checkpoints", disk.CHECKPOINTS, disk.checkpoints, SINK)
    yield Check("disk.spark", disk.SPARK, disk.spark, SPARK)


def _kafka(services: Sequence[Concerned]) -> Iterator[Check]:
    yield Check(_KAFKA, "Kafka", kafka_cluster.reach, fix=kafka_cluster.REACH_FIX)
    yield Check("version.kafka", kafka_cluster.VERSION, kafka_cluster.broker_version, needs=(_KAFKA,))
    topics = partial(kafka_cluster.topics, services)
    yield Check("topic", "topics", topics, needs=(_KAFKA,), fix=kafka_permissions.FIX)
    for name in SERVICES:
        look, subject = partial(kafka_permissions.permissions, name), f"permissions in Kafka ({name})"
        fix = kafka_permissions.FIX
        yield Check(f"kafka.permissions.{name}", subject, look, frozenset({name}), (_KAFKA,), fix)
    yield Check(
        "kafka.permissions.transactions",
        kafka_permissions.TRANSACTIONS,
        kafka_permissions.transactions,
        SWEEPER,
        (_KAFKA,),
        kafka_permissions.FIX,
    )
    yield Check("kafka.clock", clocks.BROKER, clocks.broker_clock, needs=(_KAFKA, "topic.wait"), fix=clocks.FIX)


def _postgres() -> Iterator[Check]:
    yield Check(_POSTGRES, "Postgres", postgres_server.reach, VIEWING, fix=postgres_server.REACH_FIX)
    yield Check(_SCHEMA, "schema", postgres_server.schema, VIEWING, (_POSTGRES,), postgres_server.SCHEMA_FIX)
    for name in ("sink", "sweeper"):
        look, subject = partial(postgres_permissions.permissions, name), f"permissions in Postgres ({name})"
        fix = postgres_permissions.FIX
        yield Check(f"postgres.permissions.{name}", subject, look, frozenset({name}), (_POSTGRES,), fix)
    yield Check("postgres.clock", clocks.POSTGRES, clocks.postgres_clock, VIEWING, (_POSTGRES,), clocks.FIX)


def _at_work() -> Iterator[Check]:
    both = (_KAFKA, "topic.wait", _POSTGRES, _SCHEMA)
    yield Check("tables.position", tables.POSITION, tables.position, VIEWING, both, tables.POSITION_FIX)
    yield Check("tables.freshness", tables.FRESHNESS, tables.freshness, VIEWING, (_POSTGRES, _SCHEMA))
    yield Check("sweep.due", sweeps.DUE, sweeps.due, EXPORTING, both)
    yield Check("sweep.last", sweeps.LAST, sweeps.last, SWEEPER, (_POSTGRES, _SCHEMA))
    sound = (_KAFKA, "topic.wait", "topic.input", "topic.redelivery")
    yield Check("group.offsets", group.OFFSETS, group.group_offsets, PROCESSOR, sound, group.OFFSETS_FIX)
