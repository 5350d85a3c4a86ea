"""P4, P8: a sweeper whose link to Postgres breaks continues, exports each row once and blocks no reader."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import pytest

from sweeper.service import SweeperService
from tests.integration.sweeper.conftest import ScenarioFactory
from tests.integration.sweeper.scenario import Registered, Scenario, Sweeping, ids
from tests.support.network import Link, behind_link, link_to_postgres
from tests.support.running_thread import RunningThread
from tests.support.waiting import wait_until
from wait_registry.settings.root import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 3


@pytest.mark.fault("F96")
def test_a_link_that_is_cut_refused_half_open_or_stalled(scenario: ScenarioFactory) -> None:
    at = scenario({"postgres.connect_timeout_s": 2})
    at.show()  # a sink's first position, without which nothing is exported
    with link_to_postgres(at.database.url) as link:
        with Sweeping(behind_link(at.settings, link)) as sweeping:
            rounds = Rounds(at, sweeping)
            rounds.complete("at first")
            assert link.cut() > 0
            rounds.complete("after the cut")

            link.refuse()
            rounds.fall_due()
            link.allow()
            rounds.wait_exported("after the refusals")

            for break_link, mend in ((link.half_open, link.flow), (link.stall, link.flow), (link.stall, link.cut)):
                rounds.stall(break_link, link)
                mend()
                link.flow()
                rounds.wait_exported("when the link flows again")


@pytest.mark.guarantee("P8.17")
@pytest.mark.fault("F97")
def test_a_stop_during_a_stalled_link_ends_the_sweep(
    scenario: ScenarioFactory,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("sweeper.service.STOP_LIMIT_S", 1.0)
    at = scenario({"sweeper.interval_s": 0.1, "postgres.connect_timeout_s": 30})
    at.show()
    with link_to_postgres(at.database.url) as link:
        idle = RunningService(behind_link(at.settings, link), spark)
        wait_until(lambda: idle.service.ready().ok, what="a sweep")
        before = link.figures.bytes_held_back
        link.stall()
        wait_until(lambda: link.figures.bytes_held_back > before, what="a look for what is due, held back")
        idle.stop_and_wait()
        link.flow()

        # Slow enough for the task's snapshot to be seen before it has read what it needs.
        link.slow(1_000_000, 0.05)
        due = at.due(ROWS)
        busy = RunningService(behind_link(at.settings, link), spark)
        snapshot = (
            "select 1 from pg_stat_activity where application_name = 'waitreg-sweeper-0' and xact_start is not null"
        )
        wait_until(partial(at.database.rows, at.settings, snapshot), what="the snapshot of a task")
        link.stall()
        busy.stop_and_wait()
        link.flow()
    assert "a sweep still runs" not in caplog.text

    with Sweeping(at.settings) as sweeping:
        wait_until(lambda: at.dead_lettered_ids() == ids(due), what="the export")
        assert sweeping.error is None


class RunningService(RunningThread):
    """A sweeper's service in a thread."""

    def __init__(self, settings: Settings, spark: SparkSession) -> None:
        self.service = SweeperService(settings, spark)
        super().__init__(self.service.run)

    def stop_and_wait(self) -> None:
        """Stop it, and wait until it has ended without an error."""
        self.service.request_stop()
        assert self.wait_ended(30) is None


class Rounds:
    """Rows that fall due again and again, and whether each has been exported once."""

    def __init__(self, at: Scenario, sweeping: Sweeping) -> None:
        self._at = at
        self._sweeping = sweeping
        self._due: list[Registered] = []

    def fall_due(self) -> None:
        """Have some rows fall due."""
        self._due += self._at.due([self._at.wait_record(len(self._due) + number) for number in range(ROWS)])

    def wait_exported(self, when: str) -> None:
        """Wait until each row has its one dead letter."""
        wait_until(self._are_exported, 120, f"the export {when}")

    def complete(self, when: str) -> None:
        """Have some rows fall due, and wait for their export."""
        self.fall_due()
        self.wait_exported(when)

    def stall(self, break_link: Callable[[], None], link: Link) -> None:
        """Break the link until the sweeper waits for an answer; no other client waits for it then."""
        before = link.figures.bytes_held_back
        break_link()
        self.fall_due()
        wait_until(lambda: link.figures.bytes_held_back > before, what="bytes that are held back")
        self._at.topics.wait_settled(self._at.settings.wait.topic)

    def _are_exported(self) -> bool:
        assert self._sweeping.error is None
        return self._at.dead_lettered_ids() == ids(self._due)
