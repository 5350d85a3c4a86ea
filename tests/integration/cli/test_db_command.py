"""`waitreg db`: makes the schema, says where it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import SettingsFactory
from tests.support.command import run_waitreg
from tests.support.database import Database


def test_migrate_makes_the_schema_once_and_status_says_so(
    settings_for: SettingsFactory, database: Database, tmp_path: Path
) -> None:
    settings = settings_for()
    database.drop_at_end(settings)

    before = run_waitreg(tmp_path, "db", "status", settings=settings)
    assert before.code == 2
    assert "pending  0001 initial" in before.output
    assert "fix: waitreg db migrate" in before.output.splitlines()

    first = run_waitreg(tmp_path, "db", "migrate", settings=settings)
    assert first.code == 0, first.errors
    assert "applied 0001 initial" in first.output

    again = run_waitreg(tmp_path, "db", "migrate", settings=settings)
    assert again.code == 0
    assert again.output.splitlines()[-1] == f"schema {settings.postgres.schema_name!r}: up to date"

    assert run_waitreg(tmp_path, "db", "status", settings=settings).code == 0
    assert database.rows(settings, "select count(*) from wait") == [(0,)]


@pytest.mark.parametrize("action", ["status", "migrate"])
def test_a_schema_of_a_newer_version_ends_with_2_and_what_to_run(
    settings_for: SettingsFactory, database: Database, tmp_path: Path, action: str
) -> None:
    settings = settings_for()
    database.install(settings)
    with database.connect(settings) as connection:
        connection.execute("insert into wait_registry_migration values (99, 'of the future', '', now())")
    ended = run_waitreg(tmp_path, "db", action, settings=settings)
    assert ended.code == 2
    assert "has version 99" in ended.errors
    assert "newer wait registry" in ended.errors


def test_a_migration_that_was_changed_is_named_with_its_fix(
    settings_for: SettingsFactory, database: Database, tmp_path: Path
) -> None:
    settings = settings_for()
    database.install(settings)
    with database.connect(settings) as connection:
        connection.execute("update wait_registry_migration set checksum = 'other' where version = 1")
    ended = run_waitreg(tmp_path, "db", "status", settings=settings)
    assert ended.code == 2
    assert "changed  0001 initial" in ended.output
    fix = "fix: install the wait registry that created the schema, or restore sql/migrations/0001_initial.sql as it was"
    assert fix in ended.output.splitlines()
    assert "db migrate" not in ended.output, "it would refuse"


def test_an_unreachable_postgres_ends_with_1_and_shows_no_password(
    settings_for: SettingsFactory, tmp_path: Path
) -> None:
    away = settings_for({"postgres.url": "postgresql://me:hunter2@127.0.0.1:1/registry"})
    ended = run_waitreg(tmp_path, "db", "status", settings=away)
    assert ended.code == 1
    assert ended.errors.startswith("waitreg db status: Postgres can't be reached")
    assert "Traceback" not in ended.errors
    assert "hunter2" not in ended.errors
