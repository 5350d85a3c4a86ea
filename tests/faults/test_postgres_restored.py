"""P4, P6: Postgres goes back to an earlier state while sink and sweeper run: exact again, nothing exported twice."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.integration.sink.conftest import StartSink
from tests.integration.sweeper.scenario import Registered, Scenario, Sweeping, ids
from tests.support.database import Database
from tests.support.own_postgres import own_postgres
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from waitreg.local.postgres import EmbeddedPostgres

LATER_MS = 600_000
QUICK = {
    "wait.partitions": 1,
    "wait.skew_allowance_s": 0,
    "sink.poll_interval_s": 0.1,
    "sink.restart_backoff_max_s": 0.2,
}


@pytest.mark.fault("F95")
def test_sink_and_sweeper_continue_from_the_restored_state(topics: Topics, start_sink: StartSink) -> None:
    with own_postgres() as server:
        at = Scenario.made(topics, Database(server.url), QUICK)
        settings, database = at.settings, at.database
        expired = at.register([at.wait_record(number) for number in range(5)])
        resolved, standing = at.register([at.wait_record(number, LATER_MS) for number in (5, 6)])
        sink = start_sink(settings).wait_ready()
        wait_until(lambda: shown(at) == places([*expired, resolved, standing]), what="the first rows")
        backup = back_up(server)
        database.execute(settings, "create table made_after_the_backup ()")

        with Sweeping(settings) as sweeping:
            at.resolve([resolved])
            (later,) = at.register([at.wait_record(7, LATER_MS)])
            wait_until(lambda: shown(at) == places([standing, later]), what="the rows after the export")
            wait_until(lambda: letters(at) == ids(expired), what="the rows of the dead letters")

            restore(server, backup)
            gone = "select to_regclass('made_after_the_backup') is null"
            assert database.rows(settings, gone) == [(True,)], "it is the earlier state"
            wait_until(lambda: shown(at) == places([standing, later]), what="the rows after the restore")
            wait_until(lambda: letters(at) == ids(expired), what="the dead letters after the restore")
            assert sweeping.error is None
        assert not sink.ended
        sink.stop()
        assert at.dead_lettered_ids() == ids(expired), "each once, although its row was there again"


def back_up(server: EmbeddedPostgres) -> Path:
    """Copy the data folder, cold."""
    copy = server.data.with_name("backup")
    server.stop()
    subprocess.run(["cp", "-a", str(server.data), str(copy)], check=True)
    server.start()
    return copy


def restore(server: EmbeddedPostgres, backup: Path) -> None:
    """Put the copy in the place of the data folder."""
    server.stop()
    shutil.rmtree(server.data)
    backup.rename(server.data)
    server.start()


def shown(at: Scenario) -> list[tuple[str, int]]:
    rows: list[tuple[str, int]] = at.database.rows(at.settings, "select wait_expiration_uuid, wait_offset from wait")
    return sorted(rows)


def places(registered: list[Registered]) -> list[tuple[str, int]]:
    return sorted((item.wait_id, item.offset) for item in registered)


def letters(at: Scenario) -> list[str]:
    rows = at.database.rows(at.settings, "select wait_expiration_uuid from dead_letter where reason = 'expired'")
    return sorted(wait_id for (wait_id,) in rows)
