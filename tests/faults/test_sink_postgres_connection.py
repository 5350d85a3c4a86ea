"""Links of sink and sweeper to Postgres that break, stall or are silent, and commits without an answer."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from sweeper.service import SweeperService
from tests.conftest import SettingsFactory
from tests.integration.sink.commit_cut import CommitCut
from tests.integration.sink.conftest import SinkScenarioFactory
from tests.integration.sweeper.conftest import ScenarioFactory
from tests.integration.sweeper.scenario import Registered, Scenario, Sweeping, ids
from tests.support.network import Link, behind_link, link_to_postgres
from tests.support.running_thread import RunningThread
from tests.support.waiting import wait_until
from wait_registry.postgres.connection import connect
from wait_registry.settings.tree import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def holds_back_more_than(link: Link, nbytes: int) -> bool:
    """Return whether the link has kept something from arriving since."""
    return link.figures.bytes_held_back > nbytes


@pytest.mark.fault("F89")
def test_a_session_terminated_inside_the_transaction_of_a_batch(sink_scenario: SinkScenarioFactory) -> None:
    at = sink_scenario()
    sink = at.start().wait_ready()
    at.change_and_wait("at first")
    blocked = "select pid from pg_locks where relation = 'wait'::regclass and not granted"
    with at.database.connect(at.settings) as other, other.transaction():
        other.execute("lock table wait in share mode")
        at.change()
        [(pid,)] = wait_until(lambda: at.rows(blocked), what="a transaction that waits for the lock")
        assert at.rows("select pg_terminate_backend(%s, 30000)", pid) == [(True,)]
        assert at.rows("select * from pg_stat_activity where pid = %s", pid) == []
    at.wait_applied_once("after the end of the session")
    assert not sink.ended


@pytest.mark.fault("F90")
@pytest.mark.parametrize("commit_arrives", [True, False])
def test_a_commit_without_answer_whether_it_arrived(sink_scenario: SinkScenarioFactory, commit_arrives: bool) -> None:
    at = sink_scenario({"sink.idle_progress_s": 60})
    with CommitCut(at.database.url, commit_arrives=commit_arrives) as link:
        sink = at.start_sink(behind_link(at.settings, link)).wait_ready()
        at.change_and_wait("at first")
        link.armed.set()
        at.change()
        assert link.happened.wait(60), "no COMMIT was cut off"
        at.wait_applied_once("after the lost answer")
        at.change_and_wait("later")
        assert not sink.ended
        sink.stop()


@pytest.mark.fault("F91")
def test_a_link_that_is_cut_refused_half_open_or_stalled(sink_scenario: SinkScenarioFactory) -> None:
    at = sink_scenario({"sink.idle_progress_s": 0.5, "postgres.connect_timeout_s": 2})
    with link_to_postgres(at.database.url) as link:
        sink = at.start_sink(behind_link(at.settings, link)).wait_ready()

        def is_not_ready() -> bool:
            return not sink.service.telemetry.ready().ok

        at.change_and_wait("at first")
        assert link.cut() >= 1, "the connection that holds the lock and writes"
        at.change_and_wait("after the cut")

        link.refuse()
        at.change()
        wait_until(is_not_ready, what="not being ready while refused")
        link.allow()
        at.wait_applied_once("after the refusals")
        sink.wait_ready()

        for break_link in (link.half_open, link.stall):
            before = link.figures.bytes_held_back
            break_link()
            at.change()
            wait_until(partial(holds_back_more_than, link, before), what="bytes that are held back")
            wait_until(is_not_ready, what="not being ready while nothing is answered")
            link.flow()
            at.wait_applied_once("when the link flows again")
            sink.wait_ready()

        link.stall()
        at.change()
        wait_until(is_not_ready, what="not being ready while it stalls")
        link.cut()
        link.flow()
        at.wait_applied_once("after a stall that ended with a cut")
        assert not sink.ended
        sink.stop()


@pytest.mark.guarantee("P8.17")
@pytest.mark.fault("F92")
def test_a_stop_while_nothing_is_answered_gives_up_the_open_transaction(
    sink_scenario: SinkScenarioFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sink.service.STOP_LIMIT_S", 1.0)
    at = sink_scenario()
    with link_to_postgres(at.database.url) as link:
        sink = at.start_sink(behind_link(at.settings, link)).wait_ready()
        at.change_and_wait("at first")
        blocked = "select pid from pg_locks where relation = 'wait'::regclass and not granted"
        with at.database.connect(at.settings) as other, other.transaction():
            other.execute("lock table wait in share mode")
            at.change()
            wait_until(lambda: at.rows(blocked), what="a transaction that waits for the lock")
            before = link.figures.bytes_held_back
            link.stall()
        # The transaction has its lock, and its answer doesn't arrive.
        wait_until(partial(holds_back_more_than, link, before), what="an answer that is held back")
        sink.service.request_stop()
        assert sink.wait_ended(30) is None
        link.flow()
    at.start().wait_ready()
    at.wait_applied_once("after the next start")


@pytest.mark.fault("F93")
def test_a_silent_network_is_noticed_within_half_a_minute_by_either_side(prepared: SettingsFactory) -> None:
    """Where no packet comes through, nothing but the limits of the two kernels ends a connection."""
    with closing(connect(prepared().postgres, autocommit=True)) as connection:
        ours = socket.socket(fileno=socket.dup(connection.pgconn.socket))
        with ours:
            options = ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT")
            idle, interval, count, unacknowledged_ms = (
                ours.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) for name in options
            )
            assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert idle + interval * count <= 30
        assert unacknowledged_ms == 30_000
        theirs = [setting(connection, name) for name in ("idle", "interval", "count")]
        assert theirs[0] + theirs[1] * theirs[2] <= 30, "or a dead sink's lock blocks a standby"


def setting(connection: Any, name: str) -> int:
    return int(connection.execute(f"select current_setting('tcp_keepalives_{name}')").fetchone()[0])


ROWS = 3


@pytest.mark.fault("F96")
def test_a_sweepers_link_that_is_cut_refused_half_open_or_stalled(scenario: ScenarioFactory) -> None:
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
    scenario: ScenarioFactory, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
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
