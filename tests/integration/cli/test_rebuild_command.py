"""`waitreg rebuild`: says what it would do, and leaves the view alone while a sink runs."""

from __future__ import annotations

from pathlib import Path

from sink.advisory_lock import sink_lock_key, try_lock
from tests.conftest import SettingsFactory
from tests.support.command import run_waitreg
from tests.support.database import Database


def test_a_dry_run_reports_an_orphaned_row_and_leaves_it(
    prepared: SettingsFactory, database: Database, tmp_path: Path
) -> None:
    settings = prepared({"wait.partitions": 1})
    with database.connect(settings) as connection:
        connection.execute(
            "insert into wait (wait_expiration_uuid, original_topic, wait_expiration_time, wait_topic, wait_partition, "
            "wait_offset) values ('orphan', 'orders', now(), %s, 0, 0)",
            (settings.wait.topic,),
        )
    dry = run_waitreg(tmp_path, "rebuild", "--dry-run", settings=settings, deadline_s=120)
    assert dry.code == 0, dry.errors
    assert "would be replaced" in dry.output
    assert database.rows(settings, "select count(*) from wait") == [(1,)]


def test_a_rebuild_while_a_sink_runs_ends_with_3(prepared: SettingsFactory, database: Database, tmp_path: Path) -> None:
    settings = prepared()
    with database.connect(settings) as sink:
        assert try_lock(sink, sink_lock_key(sink, settings.wait.topic))
        ended = run_waitreg(tmp_path, "rebuild", settings=settings)
    assert ended.code == 3
    assert "a sink is running" in ended.errors
    assert "Traceback" not in ended.errors
