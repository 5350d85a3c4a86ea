"""Connections to a real Postgres: their settings, errors that quote no row, and waits that can be interrupted (P8)."""

from __future__ import annotations

import threading
from contextlib import ExitStack, nullcontext
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from pydantic import SecretStr

from tests.conftest import SettingsFactory
from tests.support.database import Database
from tests.support.network import behind_link, link_to_postgres
from tests.support.stack import Stack
from tests.support.waiting import wait_until
from wait_registry.errors import TransientError
from wait_registry.postgres.connection import PostgresUnavailable, connect, connect_pooled, lift_time_limits
from wait_registry.postgres.errors import error_text
from wait_registry.postgres.open_connections import OpenConnections
from wait_registry.postgres.own_session import has_own_session
from wait_registry.settings.postgres import PostgresSettings


def server_with(stack: Stack, **defaults: str) -> PostgresSettings:
    """Return settings for the run's server with other defaults."""
    options = "%20".join(f"-c%20{name}%3D{value}" for name, value in defaults.items())
    joint = "&" if "?" in stack.postgres_url else "?"
    return PostgresSettings(url=SecretStr(f"{stack.postgres_url}{joint}options={options}"))


@pytest.mark.parametrize("opener", [connect, connect_pooled])
@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Asia/Tokyo"])
def test_the_first_and_the_last_time_are_read_whatever_the_server_s_zone(stack: Stack, zone: str, opener: Any) -> None:
    with opener(server_with(stack, TimeZone=zone, DateStyle="SQL")) as connection:
        question = "select timestamptz '0001-01-01T00:00:00Z', timestamptz '9999-12-31T23:59:59Z'"
        for binary in (False, True):
            row = connection.execute(question, binary=binary).fetchone()
            assert row == (datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC))


@pytest.mark.parametrize("autocommit", [True, False])
def test_a_long_reader_has_no_time_limit_of_the_server_s(stack: Stack, autocommit: bool) -> None:
    limits = {"statement_timeout": "60000", "idle_in_transaction_session_timeout": "60000"}
    with connect(server_with(stack, **limits), autocommit=autocommit) as connection:
        lift_time_limits(connection)
        connection.rollback()
        for name in limits:
            assert connection.execute("select current_setting(%s)", (name,)).fetchone() == ("0",)


class SharedBackends:
    """The connections of a pooler in transaction mode, each of which has one of the two sessions for a statement."""

    def __init__(self, opened: ExitStack, url: str, takes_turns: bool) -> None:
        self._free = [opened.enter_context(psycopg.connect(url, autocommit=True)) for _ in range(2)]
        self._takes_turns = takes_turns
        self.info = SimpleNamespace(backend_pid=-1)

    def execute(self, query: str, prepare: bool) -> psycopg.Cursor[Any]:
        """Execute a statement in the session that is free for the longest time, or for the shortest."""
        self._free.append(self._free.pop(0 if self._takes_turns else -1))
        return self._free[-1].execute(query.encode(), prepare=prepare)

    def fileno(self) -> int:
        return self._free[0].fileno()

    def close(self) -> None:
        """Keep the sessions, as a pooler does."""


@pytest.mark.guarantee("P8.29")
@pytest.mark.parametrize("takes_turns", [False, True])
def test_a_connection_without_a_session_of_its_own_is_found(database: Database, takes_turns: bool) -> None:
    with ExitStack() as opened:
        shared: Any = SharedBackends(opened, database.url, takes_turns)
        assert not has_own_session(shared, lambda: shared)


def test_a_session_that_no_other_connection_gets_is_its_own(database: Database) -> None:
    with psycopg.connect(database.url, autocommit=True) as first:
        behind: Any = SimpleNamespace(execute=first.execute, info=SimpleNamespace(backend_pid=-1))
        assert has_own_session(behind, lambda: psycopg.connect(database.url, autocommit=True))


@pytest.mark.guarantee("P8.29")
@pytest.mark.parametrize("ends", ["commit", "rollback", "error", "block"])
def test_a_transaction_leaves_nothing_in_its_session(settings_for: SettingsFactory, ends: str) -> None:
    settings = settings_for().postgres
    asked = "select current_setting('search_path'), current_setting('statement_timeout')"
    with connect_pooled(settings, statement_timeout_s=7.5) as connection:
        for _ in range(7):
            with connection.transaction() if ends == "block" else nullcontext():
                assert connection.execute(asked).fetchone() == (f'"{settings.schema_name}"', "7500ms")
                with pytest.raises(psycopg.errors.ReadOnlySqlTransaction), connection.transaction():
                    connection.execute("create table never (number int)")
                assert connection.execute(asked).fetchone() == (f'"{settings.schema_name}"', "7500ms")
            if ends == "error":
                with pytest.raises(psycopg.errors.UndefinedTable):
                    connection.execute("select from nowhere")
            connection.commit() if ends == "commit" else connection.rollback()
        # Not by the connection's own methods, which would begin a transaction.
        left = connection.pgconn.exec_(
            b"select name from pg_settings where source = 'session' union all select name from pg_prepared_statements"
        )
        assert left.ntuples == 0


@pytest.mark.guarantee("P8.16")
def test_the_error_of_a_refused_row_does_not_quote_the_row(database: Database) -> None:
    with psycopg.connect(database.url) as connection:
        connection.execute("create temporary table kept (body bytea, constraint is_small check (length(body) < 3))")
        with pytest.raises(psycopg.errors.CheckViolation, match="Failing row contains") as refused:
            connection.execute("insert into kept values (%s)", (b"payload",))
    said = error_text(refused.value)
    assert said.startswith("CheckViolation: new row for relation")
    assert "is_small" in said and "23514" in said
    assert b"payload".hex() not in said


def test_an_error_without_details_is_shown_whole() -> None:
    assert error_text(psycopg.OperationalError("it is closed")) == "OperationalError: it is closed"
    assert error_text(TransientError("asked in vain")) == "TransientError: asked in vain"


def test_a_running_statement_is_interrupted_and_no_other_starts(settings_for: SettingsFactory) -> None:
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


def test_a_connection_without_first_answers_is_interrupted(settings_for: SettingsFactory, database: Database) -> None:
    connections, ended = OpenConnections(), threading.Event()
    with link_to_postgres(database.url) as link, ExitStack() as opened:
        settings = behind_link(settings_for({"postgres.connect_timeout_s": 60}), link).postgres

        def connect() -> None:
            try:
                opened.enter_context(connections.open(settings, "asks its first question"))
            except (PostgresUnavailable, psycopg.OperationalError):
                ended.set()

        link.slow(1_000_000, 0.2)
        thread = threading.Thread(target=connect, daemon=True)
        thread.start()
        asked = (
            "select 1 from pg_stat_activity where application_name = 'asks its first question'"
            " and query like '%set_config(''tcp_keepalives%'"
        )
        with psycopg.connect(database.url, autocommit=True) as looking:
            wait_until(lambda: looking.execute(asked).fetchall(), what="its first question", poll_s=0.01)
        link.stall()
        connections.give_up()
        assert ended.wait(30)
        thread.join()
