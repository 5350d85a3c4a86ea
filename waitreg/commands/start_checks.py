"""Everything a service looks at before it starts, as lines; nothing here changes anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

from wait_registry.errors import WaitRegistryError
from waitreg.commands.check_line import CheckLine, Standing
from waitreg.commands.position_checks import group_positions, view_position

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

    from wait_registry.settings.relations import Service
    from wait_registry.settings.root import Settings

SERVICES: Final[tuple[Service, ...]] = ("processor", "sink", "sweeper")
Check = Callable[["Settings"], Iterator[CheckLine]]


def check_all(settings: Settings, services: Sequence[Service]) -> Iterator[CheckLine]:
    """Yield a line for every start check of these services, in the order in which they depend on each other.

    A check that meets an error of the tree yields it as its line; nothing is raised for what a user can mend.
    """
    viewing = bool({"sink", "sweeper"} & set(services))
    for service in services:
        yield from _guarded(f"settings of the {service}", partial(_relations, service), settings)
    if "processor" in services and settings.processor.handler:
        yield from _guarded("handler", _handler, settings)
    if viewing:
        yield from _guarded("Java", _java, settings)
        yield from _guarded("jars of Spark's Kafka source", _jars, settings)
    reached: list[CheckLine] = []
    for line in chain(_kafka_lines(settings, services), _postgres_lines(settings) if viewing else ()):
        reached.append(line)
        yield line
    if any(line.standing is Standing.ERROR for line in reached):
        yield CheckLine("positions", Standing.SKIPPED, "what they are positions in must be sound first")
        return
    if viewing:
        yield from _guarded("position of the view", view_position, settings)
    if "processor" in services and settings.processor.group:
        yield from _guarded(f"offsets of group {settings.processor.group}", group_positions, settings)


def _guarded(subject: str, check: Check, settings: Settings) -> Iterator[CheckLine]:
    try:
        yield from check(settings)
    except WaitRegistryError as error:
        yield CheckLine(subject, Standing.ERROR, str(error))


def _relations(service: Service, settings: Settings) -> Iterator[CheckLine]:
    from wait_registry.settings.relations import relation_problems

    problems = relation_problems(settings, service)
    for problem in problems:
        standing = Standing.ERROR if problem.fatal else Standing.WARNING
        yield CheckLine(f"settings of the {service}", standing, problem.message)
    if not problems:
        yield CheckLine(f"settings of the {service}", Standing.OK, "no contradictions")


def _handler(settings: Settings) -> Iterator[CheckLine]:
    from processor.handlers.loading import load_handler
    from waitreg.commands.handler_path import make_handlers_importable

    make_handlers_importable()
    load_handler(settings.processor)
    yield CheckLine("handler", Standing.OK, settings.processor.handler)


def _java(_settings: Settings) -> Iterator[CheckLine]:
    from wait_registry.jvm import java_command

    yield CheckLine("Java", Standing.OK, java_command())


def _jars(settings: Settings) -> Iterator[CheckLine]:
    from wait_registry.jvm import jar_directory

    yield CheckLine("jars of Spark's Kafka source", Standing.OK, str(jar_directory("spark", settings.spark.jars_dir)))


def _kafka_lines(settings: Settings, services: Sequence[Service]) -> Iterator[CheckLine]:
    reached = list(_guarded("Kafka", _kafka, settings))
    yield from reached
    if any(line.standing is Standing.ERROR for line in reached):
        yield CheckLine("topics", Standing.SKIPPED, "Kafka must be reachable first")
    else:
        yield from _guarded("topics", partial(_topics, services), settings)


def _kafka(settings: Settings) -> Iterator[CheckLine]:
    from wait_registry.kafka.clients import admin
    from wait_registry.kafka.cluster import cluster_id

    client: AdminClient = admin(settings.kafka)
    yield CheckLine("Kafka", Standing.OK, f"{settings.kafka.bootstrap_servers}, cluster {cluster_id(client)}")


def _topics(services: Sequence[Service], settings: Settings) -> Iterator[CheckLine]:
    from wait_registry.kafka.topics import check_topics
    from waitreg.commands.topic_lines import topic_lines

    # Two services share topics: each finding once.
    findings = {(f.topic, f.rule): f for service in services for f in check_topics(settings, service)}
    yield from topic_lines(sorted(findings.values(), key=lambda finding: finding.topic))


def _postgres_lines(settings: Settings) -> Iterator[CheckLine]:
    reached = list(_guarded("Postgres", _postgres, settings))
    yield from reached
    if any(line.standing is Standing.ERROR for line in reached):
        yield CheckLine("schema", Standing.SKIPPED, "Postgres must be reachable first")
    else:
        yield from _guarded("schema", _schema, settings)


def _postgres(settings: Settings) -> Iterator[CheckLine]:
    from wait_registry.postgres.connection import connect

    with connect(settings.postgres, application_name="waitreg doctor") as connection:
        version = connection.info.server_version
        where = f"{connection.info.host}:{connection.info.port}/{connection.info.dbname}"
    yield CheckLine("Postgres", Standing.OK, f"{where}, version {version // 10000}")


def _schema(settings: Settings) -> Iterator[CheckLine]:
    from wait_registry.postgres.connection import connect
    from wait_registry.postgres.schema import require_schema, schema_version

    with connect(settings.postgres, application_name="waitreg doctor") as connection:
        require_schema(connection)
        version = schema_version(connection)
    yield CheckLine("schema", Standing.OK, f"{settings.postgres.schema_name!r} at version {version}")
