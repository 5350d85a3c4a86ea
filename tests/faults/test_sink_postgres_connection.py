"""P6, P8: a sink whose connection to Postgres breaks continues by itself; nothing is lost or applied twice."""

from __future__ import annotations

import socket
from contextlib import closing
from functools import partial
from typing import Any

import pytest

from tests.conftest import SettingsFactory
from tests.integration.sink.commit_cut import CommitCut
from tests.integration.sink.conftest import SinkScenarioFactory
from tests.support.network import Link, behind_link, link_to_postgres
from tests.support.waiting import wait_until
from wait_registry.postgres.connection import connect


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
def test_a_commit_without_an_answer_whether_it_arrived_or_not(
    sink_scenario: SinkScenarioFactory, commit_arrives: bool
) -> None:
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
