"""A source connector and a sweeper would export everything twice: the second of them is refused."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from pydantic import SecretStr

from tests.conftest import SettingsFactory
from tests.support.command import run_waitreg
from tests.support.database import Database
from tests.support.naming import Names
from wait_registry.cli.connect.postgres_checks import require_no_sweeper_at_work
from wait_registry.cli.connect.sweeping import require_no_source_at_work
from wait_registry.errors import ConfigurationError

SWEPT = """
insert into sweep (wait_topic, started_at, duration_s, due, skipped, result, instance)
values (%s, clock_timestamp() - make_interval(secs => %s), 1, 0, '[]', 'done', 'host-1') returning 1
"""

FILLED = """
insert into expired_outbox (
    wait_expiration_uuid, original_topic, wait_expiration_time, wait_topic, wait_partition, wait_offset, created_at
) values ('an id', 'orders', now(), %s, 0, %s, clock_timestamp() - make_interval(secs => %s)) returning 1
"""


def test_a_source_is_refused_after_a_recent_sweep_of_its_topic(
    settings_for: SettingsFactory, database: Database
) -> None:
    settings = settings_for()
    said: list[str] = []
    require_no_sweeper_at_work(settings, said.append)
    assert "Postgres can't be asked" in said[0], "there is no schema yet"
    database.install(settings)
    require_no_sweeper_at_work(settings, pytest.fail)
    long_ago_s = 10 * settings.sweeper.interval_s + 60
    database.rows(settings, SWEPT, settings.wait.topic, long_ago_s)
    database.rows(settings, SWEPT, "another.wait", 1)
    require_no_sweeper_at_work(settings, pytest.fail)
    database.rows(settings, SWEPT, settings.wait.topic, 5)
    with pytest.raises(ConfigurationError, match=r"would export each expired registration twice: stop"):
        require_no_sweeper_at_work(settings, pytest.fail)


@pytest.mark.guarantee("P4.16")
def test_with_the_kind_connect_a_sweeper_does_not_start(settings_for: SettingsFactory, tmp_path: Path) -> None:
    refused = run_waitreg(tmp_path, "sweeper", settings=settings_for({"sweeper.kind": "connect"}))
    assert refused.code == 2
    assert "sweeper.kind is connect: a Kafka Connect source exports expired records" in refused.errors + refused.output


def test_a_sweeper_does_not_start_after_the_outbox_was_filled(
    settings_for: SettingsFactory, database: Database, tmp_path: Path
) -> None:
    settings = settings_for()
    require_no_source_at_work(settings)  # there is no schema yet
    database.install(settings)
    require_no_source_at_work(settings)
    long_ago_s = 10 * settings.sweeper.interval_s + 60
    database.rows(settings, FILLED, settings.wait.topic, 1, long_ago_s)
    database.rows(settings, FILLED, "another.wait", 2, 1)
    require_no_source_at_work(settings)
    database.rows(settings, FILLED, settings.wait.topic, 3, 5)
    with pytest.raises(ConfigurationError, match=r"put a row into expired_outbox \d+ s ago"):
        require_no_source_at_work(settings)

    refused = run_waitreg(tmp_path, "sweeper", "--once", settings=settings)
    assert refused.code == 2
    assert "waitreg connect remove expired.source expired.tombstones" in refused.errors + refused.output


def test_a_sweeper_does_not_start_while_a_slot_is_in_use(settings_for: SettingsFactory, database: Database) -> None:
    settings = settings_for()
    database.install(settings)
    slot = f"waitreg_{settings.postgres.schema_name}_expired"
    with database.connect(settings) as source:
        source.execute("select pg_create_logical_replication_slot(%s, 'pgoutput', true)", (slot,))
        with pytest.raises(ConfigurationError, match="a Kafka Connect source reads expired_outbox"):
            require_no_source_at_work(settings)
    require_no_source_at_work(settings)


def test_a_sweeper_without_permission_on_the_outbox_starts(
    settings_for: SettingsFactory, database: Database, names: Names
) -> None:
    settings = settings_for()
    database.install(settings)
    database.rows(settings, FILLED, settings.wait.topic, 1, 1)
    role = f"{names.schema}_sweeper"
    url = f"{database.url}{'&' if '?' in database.url else '?'}options=-c%20role%3D{role}"
    postgres = settings.postgres.model_copy(update={"url": SecretStr(url)})
    with database.connect(settings) as owner:
        owner.execute(f"create role {role}; grant usage on schema {names.schema} to {role}".encode())
        try:
            with pytest.raises(psycopg.errors.InsufficientPrivilege), psycopg.connect(url) as sweeper:
                sweeper.execute(f"select from {names.schema}.expired_outbox".encode())
            require_no_source_at_work(settings.model_copy(update={"postgres": postgres}))
        finally:
            owner.execute(f"drop owned by {role}; drop role {role}".encode())
