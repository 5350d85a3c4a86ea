"""P4: a limit that a role or server sets for ordinary statements ends no sweep, however much is due."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from pydantic import SecretStr

from sweeper.instruments import Instruments
from sweeper.result import RowOutcome, SweepResult
from sweeper.sweeper import Sweeper
from tests.integration.sweeper.conftest import ScenarioFactory
from tests.integration.sweeper.test_sweeper import in_process
from tests.support.database import Database
from tests.support.waiting import wait_until
from wait_registry.settings.root import Settings
from wait_registry.telemetry.exposition import MetricsRegistry

LIMIT_S = 2
ASKS_FOR_LONGER = """
select 1 from pg_stat_activity
where %s = any(pg_blocking_pids(pid)) and clock_timestamp() - query_start > make_interval(secs => %s)
"""


@pytest.mark.guarantee("P4.10")
def test_a_look_for_what_is_due_that_takes_longer_than_the_roles_limit_is_waited_for(
    scenario: ScenarioFactory,
) -> None:
    at = scenario()
    at.register([at.wait_record(1)])
    at.show()
    sweeper = Sweeper(with_limit(at.settings, at.database), in_process, Instruments(MetricsRegistry()))
    with psycopg.connect(at.database.url) as slow, ThreadPoolExecutor(1) as threads:
        slow.execute(f"lock table {at.settings.postgres.schema_name}.wait in access exclusive mode")
        pid = slow.info.backend_pid
        sweeping = threads.submit(sweeper.run_once)
        wait_until(
            lambda: sweeping.done() or at.database.rows(at.settings, ASKS_FOR_LONGER, pid, 1.5 * LIMIT_S),
            what="a question that outlasts the limit",
        )
        slow.rollback()
        sweep = sweeping.result()
    sweeper.close()
    assert (sweep.result, sweep.counts[RowOutcome.EXPORTED]) == (SweepResult.DONE, 1), sweep.reason


def with_limit(settings: Settings, database: Database) -> Settings:
    """Return the settings with a role whose statements are cut off after `LIMIT_S`."""
    joint = "&" if "?" in database.url else "?"
    url = f"{database.url}{joint}options=-c%20statement_timeout%3D{LIMIT_S}s"
    return settings.model_copy(update={"postgres": settings.postgres.model_copy(update={"url": SecretStr(url)})})
