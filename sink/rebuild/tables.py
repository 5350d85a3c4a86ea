"""Rebuilds the tables from the log: Spark reads the compacted wait topic, and then the operations topic.

Run it after a position has become too old, after Postgres was restored to an older state, or when in doubt. A
partition's rows, position and position time are replaced in one transaction, by compare-and-set. So are jobs, marks and
the states of dead letters.

Alongside a Kafka Connect sink (sink.kind=connect) rows are all there is to replace: the position of that sink is in its
consumer group. It must be stopped meanwhile, or what it writes between reading and replacing would be undone. Started
again, it continues at its group's offsets, at or before the end of what was read here, and comes to the same rows.
"""

from __future__ import annotations

import logging
from contextlib import closing
from dataclasses import dataclass

from pyspark.sql import SparkSession

from sink.advisory_lock import try_lock
from sink.connect_group import require_no_second_sink, require_stopped
from sink.position import TopicPartition
from sink.progress import Connection, begin_progress, forget_progress, postgres_now, read_progress
from sink.read.log_ends import log_ends, read_log, stable_ends
from sink.read.start_positions import first_positions
from sink.rebuild.operations import OperationsResult, rebuild_operations
from sink.rebuild.replacement import QUERIES, PartitionRebuild, PartitionResult
from sink.rebuild.whole_log import Progress
from wait_registry.errors import FencedError
from wait_registry.kafka.clients import Admin
from wait_registry.kafka.clients import admin as open_admin
from wait_registry.kafka.cluster import TopicIdentity, require_same_identity
from wait_registry.kafka.topics import require_topics
from wait_registry.kafka.wait_topic import describe_wait_topic
from wait_registry.postgres.connection import connect, lift_time_limits
from wait_registry.postgres.queries import Queries
from wait_registry.postgres.schema import require_schema
from wait_registry.settings.sink import SinkKind
from wait_registry.settings.tree import Settings
from wait_registry.spark.session import session_of

log = logging.getLogger(__name__)

# For this long, the server may not have noticed the end of the last sink's connection.
LAST_SINK_S = 2.0


@dataclass(frozen=True, slots=True)
class RebuildResult:
    """What a rebuild found, per partition and in the operations topic; with ``dry_run`` nothing was changed.

    ``operations`` is None if no sink has read the operations topic yet: the sink reads it from its start.
    """

    dry_run: bool
    partitions: tuple[PartitionResult, ...]
    operations: OperationsResult | None

    @property
    def changed(self) -> int:
        """Rows in which log and tables differed."""
        waits = sum(part.missing + part.different + part.orphans for part in self.partitions)
        return waits + (0 if self.operations is None else self.operations.changed)

    def __str__(self) -> str:
        did = "would be replaced" if self.dry_run else "replaced"
        total = sum(part.rows for part in self.partitions)
        lines = [str(part) for part in (*self.partitions, self.operations) if part is not None]
        return "\n".join([*lines, f"{len(self.partitions)} partitions, {total} waits, {self.changed} rows {did}"])


def _log_progress(name: TopicPartition, done: int, total: int) -> None:
    log.info("%s: %d of %d offsets read", name, done, total)


def rebuild(
    settings: Settings, spark: SparkSession | None = None, dry_run: bool = False, progress: Progress = _log_progress
) -> RebuildResult:
    """Rebuild the tables of wait topic and operations topic, or with ``dry_run`` only report how they differ.

    ``progress`` is called with partition, offsets read and offsets to read. Postgres holds what is being rebuilt, in
    a temporary table; this process holds one chunk. Raises FencedError when a sink is running, ours or a Connect one,
    or with sink.kind=connect a Connect source (stop it, and standbys too), ConfigurationError when topic or schema
    aren't what they must be, `PositionExpired` when a partition took longer than half of delete.retention.ms,
    TransientError or psycopg.Error when Kafka or Postgres go away: a partition is replaced wholly or not at all, so run
    it again.
    """
    with closing(connect(settings.postgres, autocommit=True, application_name="waitreg rebuild")) as connection:
        # The transaction of a partition is long, and idle while Spark reads.
        lift_time_limits(connection)
        require_schema(connection)
        if not try_lock(connection, settings.wait.topic, LAST_SINK_S):
            raise FencedError(
                f"a sink is running on {settings.wait.topic}: stop it, and its standbys, then run the rebuild again"
            )
        require_topics(settings, "sink")
        if not dry_run:
            _require_no_connector(settings, connection)
        with session_of(settings, "waitreg-rebuild", spark) as session:
            return _rebuild(settings, session, connection, dry_run, progress)


def _require_no_connector(settings: Settings, connection: Connection) -> None:
    """Refuse a rebuild alongside a Connect sink, or where it leaves a Connect source without a sink to hold it back."""
    admin, group = open_admin(settings.kafka), settings.sink.connect_group
    if settings.sink.kind is SinkKind.SPARK:
        require_no_second_sink(admin, settings.kafka, group, settings.wait.topic)
        return
    require_stopped(admin, group)
    # Once our position is forgotten the outbox goes by time alone, and no sink runs yet: what is finished from now on
    # would be in the table, and be exported.
    if connection.execute(Queries("connect")["outbox_read"]).fetchone() is not None:
        raise FencedError(
            "a Kafka Connect source reads expired_outbox: until the sink has caught up after this rebuild it would "
            "export what is finished meanwhile. Delete the connectors expired.source and "
            "expired.tombstones first, then run the rebuild again, and create them after the sink"
        )


def _rebuild(
    settings: Settings, spark: SparkSession, connection: Connection, dry_run: bool, progress: Progress
) -> RebuildResult:
    admin = open_admin(settings.kafka)
    identity = describe_wait_topic(admin, settings.wait.topic, settings.wait.partitions)
    if settings.sink.kind is SinkKind.SPARK:
        _begin(connection, admin, identity, dry_run)
    results = []
    for partition in range(identity.partitions):
        name = TopicPartition(identity.topic, partition)
        ends = log_ends(connection, admin, [name])
        part = PartitionRebuild(settings, spark, connection, admin, name)
        results.append(part.run(ends, stable_ends(admin, [name])[name], dry_run, progress))
        log.info("%s", results[-1])
    if settings.sink.kind is SinkKind.CONNECT and not dry_run:
        # Last: without a position the outbox for a Connect source takes every row for complete.
        forget_progress(connection, identity.topic)
    # After the waits, which are rebuilt also if this topic can't be read.
    operations = rebuild_operations(settings, spark, connection, admin, dry_run, progress)
    return RebuildResult(dry_run, tuple(results), operations)


def _begin(connection: Connection, admin: Admin, identity: TopicIdentity, dry_run: bool) -> None:
    """Create initial positions for a schema without a sink of ours."""
    recorded, _ = read_progress(connection, identity.topic)
    if recorded is not None:
        require_same_identity(recorded, identity)
    elif not dry_run:
        now = postgres_now(connection)
        positions = first_positions(read_log(admin, identity), now)
        # The rows of another sink go at once: a sink started after a rebuild that broke off would take them for its
        # own. All partitions at once, too: their number is what is recorded of the topic.
        with connection.transaction():
            connection.execute(QUERIES["remove_topic"], {"topic": identity.topic})
            begin_progress(connection, identity, positions)
