"""`waitreg db` makes the schema, and `waitreg rebuild --dry-run` says what it would replace."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import SettingsFactory
from tests.integration.connect.outbox import register
from tests.support.command import run_waitreg
from tests.support.database import Database


def test_migrate_makes_the_schema_once(settings_for: SettingsFactory, database: Database, tmp_path: Path) -> None:
    settings = settings_for()
    database.drop_at_end(settings)
    before = run_waitreg(tmp_path, "db", "status", settings=settings)
    assert before.code == 2
    assert "pending  0001 schema" in before.output
    assert "fix: waitreg db migrate" in before.output.splitlines()
    first = run_waitreg(tmp_path, "db", "migrate", settings=settings)
    assert first.code == 0, first.errors
    assert "applied 0001 schema" in first.output
    again = run_waitreg(tmp_path, "db", "migrate", settings=settings)
    assert again.code == 0
    assert again.output.splitlines()[-1] == f"schema {settings.postgres.schema_name!r}: up to date"
    assert run_waitreg(tmp_path, "db", "status", settings=settings).code == 0
    assert database.rows(settings, "select count(*) from wait") == [(0,)]


def test_a_dry_run_only_reports_an_orphaned_row(prepared: SettingsFactory, database: Database, tmp_path: Path) -> None:
    settings = prepared({"wait.partitions": 1})
    with database.connect(settings) as connection:
        register(connection, "orphan", 0, 0, topic=settings.wait.topic)
    dry = run_waitreg(tmp_path, "rebuild", "--dry-run", settings=settings, deadline_s=120)
    assert dry.code == 0, dry.errors
    assert "would be replaced" in dry.output
    assert database.rows(settings, "select count(*) from wait") == [(1,)]
