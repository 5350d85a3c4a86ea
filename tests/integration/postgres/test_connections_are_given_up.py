"""P8: whoever waits for Postgres can be made to stop waiting, at whatever it waits."""

from __future__ import annotations

import threading
from contextlib import ExitStack

import psycopg
import pytest

from tests.conftest import SettingsFactory
from tests.faults.behind_a_link import behind_link, link_to_postgres
from tests.support.database import Database
from tests.support.waiting import wait_until
from wait_registry.postgres.connection import PostgresUnavailable
from wait_registry.postgres.open_connections import OpenConnections


def test_a_statement_that_runs_is_broken_off_and_no_other_one_begins(settings_for: SettingsFactory) -> None:
    settings, connections = settings_for().postgres, OpenConnections()
    with connections.open(settings, "ended before") as connection:
        assert connection.execute("select 1").fetchone() == (1,)
    with connections.open(settings, "test") as connection:
        waiting = threading.Timer(0.2, connections.give_up)
        waiting.start()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("select pg_sleep(60)")
        waiting.join()
    with pytest.raises(PostgresUnavailable), connections.open(settings, "test"):
        pass


def test_a_connection_whose_first_answers_do_not_come_is_broken_off_too(
    settings_for: SettingsFactory, database: Database
) -> None:
    connections, ended = OpenConnections(), threading.Event()
    with link_to_postgres(database.url) as link, ExitStack() as opened:
        settings = behind_link(settings_for({"postgres.connect_timeout_s": 60}), link).postgres

        def connect() -> None:
            try:
                opened.enter_context(connections.open(settings, "test"))
            except (PostgresUnavailable, psycopg.OperationalError):
                ended.set()

        link.slow(1_000_000, 0.2)
        thread = threading.Thread(target=connect, daemon=True)
        thread.start()
        asked = "select 1 from pg_stat_activity where query like '%%set_config(''tcp_keepalives%%' and pid <> %s"
        with psycopg.connect(database.url, autocommit=True) as looking:
            pid = looking.info.backend_pid
            wait_until(lambda: looking.execute(asked, (pid,)).fetchall(), what="its first question", poll_s=0.01)
        link.stall()
        connections.give_up()
        assert ended.wait(30)
        thread.join()
