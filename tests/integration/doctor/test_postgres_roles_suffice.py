"""What a role in Postgres needs: the grants that doctor names, or those of deploy/postgres/roles.sql, suffice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime

import pytest

from sink.advisory_lock import try_lock
from sink.progress import forget_progress
from sweeper.connect_policy import require_no_source_at_work
from sweeper.due import find_due
from sweeper.housekeeping import purge, record_sweep
from sweeper.result import Sweep
from sweeper.snapshot import PartitionSnapshot
from tests.conftest import SettingsFactory
from tests.integration.connect.outbox import FILLED
from tests.integration.doctor.findings import as_role, look
from tests.integration.sink.applying import HandFed, now_ms
from tests.integration.sink.wait_topic import ENCODER, new_id
from tests.support.database import Database
from tests.support.naming import Names
from tests.support.postgres_roles import apply_roles, roles
from tests.unit.sink.batches import Row
from wait_registry.diagnosis import Severity
from wait_registry.errors import ConfigurationError
from wait_registry.postgres.connection import connect
from wait_registry.postgres.queries import Queries
from wait_registry.postgres.schema import require_schema
from wait_registry.records.dead_letter import Failure, Reason, dead_letter_headers
from wait_registry.records.lineage import Lineage
from wait_registry.records.original import Original
from wait_registry.records.tombstone import Outcome, tombstone_headers
from wait_registry.settings.relations import Service
from wait_registry.settings.tree import Settings
from waitreg.doctor.postgres import permissions

ORIGINAL = Original("orders", 0, 7, 1_700_000_000_000, "create", b"k", b"body", ())


@pytest.fixture
def logins(database: Database, names: Names) -> Iterator[Mapping[str, str]]:
    """Members of the roles that deploy/postgres/roles.sql makes."""
    with roles(database.url, names.prefix) as made:
        yield made


@pytest.mark.parametrize("service", ["sink", "sweeper"])
def test_the_named_grants_suffice(
    prepared: SettingsFactory, database: Database, logins: Mapping[str, str], service: Service
) -> None:
    settings = as_role(logins[service], prepared(), database.url)
    id = f"postgres.permissions.{service}"
    lines = look(settings, service).of(id)
    assert {line.severity for line in lines} == {Severity.ERROR}
    assert any("use the schema" in line.message for line in lines)
    assert any(line.message.endswith(" on wait") for line in lines)
    for line in lines:
        database.execute(settings, line.fix.removeprefix("psql: "))
    found = look(settings, service)
    assert found.broken == []
    assert found.one(id).message.startswith(f"role {logins[service]} has all ")


def _as(logins: Mapping[str, str], service: Service, settings: Settings, database: Database, names: Names) -> Settings:
    """Return settings of a service's role once the file has been applied to its schema."""
    mine = as_role(logins[service], settings, database.url)
    assert {line.severity for line in permissions(service, mine)} == {Severity.ERROR}
    apply_roles(database.url, settings.postgres.schema_name, names.prefix)
    [line] = permissions(service, mine)
    assert line.severity is Severity.OK
    return mine


def test_the_role_of_the_sink_fills_and_clears_every_table(
    prepared: SettingsFactory, database: Database, logins: Mapping[str, str], names: Names
) -> None:
    settings = _as(logins, "sink", prepared(), database, names)
    wait_id = new_id()
    wait = Row(wait_id.encode(), b"body", 0, 1, headers=tuple(ENCODER.headers(ORIGINAL, wait_id, now_ms() - 60_000)))
    unreadable = Row(b"\xff", b"body", 0, 2)
    done = Row(wait_id.encode(), None, 0, 3, now_ms(), tuple(tombstone_headers(Outcome.DONE)))
    lineage = Lineage.of(
        ORIGINAL, wait_id=wait_id, wait_partition=0, wait_offset=1, group="g", instance="i", delivery=1
    )
    failure = Failure(Reason.EXPIRED, None, None, None, now_ms())
    letter = Row(b"k", b"body", 0, 1, headers=tuple(dead_letter_headers((), lineage, failure)), topic="dlq")
    with closing(HandFed(settings)) as waits, closing(HandFed(settings, "dlq", dead_letters=True)) as letters:
        require_schema(waits.connection)
        assert try_lock(waits.connection, "wait")
        waits.feed([wait])
        letters.feed([letter])
        waits.feed([unreadable, done])
        rebuild = Queries("rebuild")
        waits.connection.execute(rebuild["stage"])
        waits.connection.execute(rebuild["remove_rows"], {"topic": "wait", "partition": 0})
        waits.connection.execute(rebuild["insert_rows"])
        forget_progress(letters.connection, "dlq")
    counts = (
        "select (select count(*) from wait), (select count(*) from quarantine), (select count(*) from late_outcome)"
    )
    assert database.rows(settings, counts) == [(0, 1, 1)]
    assert database.rows(settings, "select finished_late from dead_letter") == [(True,)]


def test_the_role_of_the_sweeper_reads_records_and_purges(
    prepared: SettingsFactory, database: Database, logins: Mapping[str, str], names: Names
) -> None:
    plain = prepared()
    settings = _as(logins, "sweeper", plain, database, names)
    with closing(HandFed(plain)) as sink:
        old = Row(b"\xff", b"body", 0, 1)
        sink.feed([old])
    database.execute(plain, "update quarantine set created_at = now() - interval '99 days'")
    with connect(settings.postgres, autocommit=True) as connection:
        require_schema(connection)
        assert find_due(connection, settings, 4).rows == 0
        record_sweep(connection, Sweep("wait", datetime.now(UTC), 1.0), "here")
        assert purge(connection, 30, 400)["quarantine"] == 1
    with closing(PartitionSnapshot(settings, 0)) as view:
        assert view.next_keys(10, 1000) == []
    require_no_source_at_work(settings)
    database.rows(plain, FILLED, settings.wait.topic, 3, 5)
    with pytest.raises(ConfigurationError, match="put a row into expired_outbox"):
        require_no_source_at_work(settings)
