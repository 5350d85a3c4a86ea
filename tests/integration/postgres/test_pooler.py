"""Behind a real pooler: what needs a session refuses one that is shared, the rest works and leaves nothing there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from pydantic import SecretStr

from tests.conftest import RunHere, SettingsFactory
from tests.integration.redrive.conftest import at
from tests.integration.redrive.scenario import Scenario
from tests.support.chosen_stack import not_tested
from tests.support.database import Database
from tests.support.own_postgres import reachable
from tests.support.settings import with_postgres
from tests.support.waiting import wait_until
from wait_registry.postgres import own_session
from wait_registry.postgres.connection import PostgresRefused, PostgresUnavailable, connect
from wait_registry.settings.postgres import PostgresSettings
from waitreg.local.account import unprivileged_account
from waitreg.local.child import GuardedChild, Program, log_tail
from waitreg.local.ports import LOOPBACK, free_ports

# Debian's folder for it isn't on every PATH.
PROGRAM = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")


@contextmanager
def pgbouncer(folder: Path, server: str, pool_mode: str, **settings: object) -> Iterator[str]:
    """Run one with two sessions to a server, and yield the address for its clients.

    Args:
        folder: for its files.
        server: the server's URL.
        pool_mode: as in pgbouncer.ini.
        settings: others, by name.
    """
    if PROGRAM is None:
        not_tested("pgbouncer is not here; `make pgbouncer` installs it")
    there, (port,) = conninfo_to_dict(server), free_ports(1)
    own = {
        "listen_addr": LOOPBACK,
        "listen_port": port,
        "unix_socket_dir": "",
        "auth_type": "trust",
        "auth_file": folder / "users.txt",
        "pool_mode": pool_mode,
        "default_pool_size": 2,
        **settings,
    }
    lines = [f"{name} = {value}" for name, value in own.items()]
    forward = " ".join(f"{name}={there[name]}" for name in ("host", "port", "password") if there.get(name))
    (folder / "pgbouncer.ini").write_text("\n".join(["[databases]", f"* = {forward}", "[pgbouncer]", *lines, ""]))
    (folder / "users.txt").write_text(f'"{there["user"]}" ""\n')
    log, url = folder / "pgbouncer.log", f"postgresql://{there['user']}@{LOOPBACK}:{port}/{there['dbname']}"
    command = [PROGRAM, str(reachable(folder) / "pgbouncer.ini")]
    child = GuardedChild(Program(command, log, folder, account=unprivileged_account()))

    def answers() -> bool:
        assert child.exit_status is None, f"pgbouncer ended:\n{log_tail(log, 30)}"
        with suppress(psycopg.OperationalError), psycopg.connect(url, connect_timeout=5):
            return True
        return False

    try:
        wait_until(answers, what="an answer of pgbouncer")
        yield url
    finally:
        child.kill()


__all__ = ["at"]

# pgbouncer keeps these for each client.
KEPT = {"application_name", "client_encoding", "DateStyle", "TimeZone", "standard_conforming_strings"}
LEFT = """
select 'setting ' || name from pg_settings where source = 'session'
union all select 'statement ' || name from pg_prepared_statements
union all select 'lock ' || objid from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()
"""


def left_behind(url: str) -> set[str]:
    """Return what both sessions of a pooler have that a new one hasn't."""
    with ExitStack() as opened:
        both = [opened.enter_context(psycopg.connect(url, prepare_threshold=None)) for _ in range(2)]
        found = {text for one in both for (text,) in one.execute(LEFT.encode()).fetchall()}
        assert len({one.execute("select pg_backend_pid()").fetchone() for one in both}) == 2
    return found - {f"setting {name}" for name in KEPT}


@pytest.fixture
def pooled(tmp_path: Path, database: Database) -> Iterator[str]:
    """The address of a pooler in transaction mode."""
    with pgbouncer(tmp_path, database.url, "transaction") as url:
        yield url


@pytest.mark.guarantee("P8.29")
@pytest.mark.parametrize("takes_turns", [0, 1])
@pytest.mark.parametrize("mode", ["transaction", "statement"])
@pytest.mark.parametrize("busy", [False, True])
def test_no_session_may_be_shared(tmp_path: Path, database: Database, mode: str, takes_turns: int, busy: bool) -> None:
    with ExitStack() as opened:
        url = opened.enter_context(pgbouncer(tmp_path, database.url, mode, server_round_robin=takes_turns))
        others = [opened.enter_context(psycopg.connect(url, autocommit=True)) for _ in range(2 if busy else 0)]
        for other in others:
            other.execute("select 1")
        with pytest.raises(PostgresRefused, match="pool_mode = transaction"):
            connect(PostgresSettings(url=SecretStr(url)))
        if mode == "transaction":
            assert left_behind(url) == set()


@pytest.mark.guarantee("P8.29")
def test_a_pool_of_sessions_serves_everything(tmp_path: Path, database: Database) -> None:
    with pgbouncer(tmp_path, database.url, "session") as url:
        for _ in range(3):
            with connect(PostgresSettings(url=SecretStr(url)), autocommit=True) as connection:
                connection.execute("create temporary table kept (number int)")
                assert connection.execute("select count(*) from kept").fetchone() == (0,)
        assert left_behind(url) == set()


def test_a_session_with_the_lock_of_another_client_is_refused(tmp_path: Path, database: Database) -> None:
    with pgbouncer(tmp_path, database.url, "session", server_reset_query="") as url:
        with connect(PostgresSettings(url=SecretStr(url)), autocommit=True) as first:
            first.execute("select pg_advisory_lock(1)")
        with pytest.raises(PostgresRefused, match="server_reset_query = DISCARD ALL"):
            connect(PostgresSettings(url=SecretStr(url)))


@pytest.mark.parametrize("command", ["query stuck_now", "dlq redrive group=a", "db status", "doctor redrive"])
def test_a_paused_pool_is_said_with_what_to_do(
    tmp_path: Path, prepared: SettingsFactory, run_here: RunHere, database: Database, command: str
) -> None:
    user = conninfo_to_dict(database.url)["user"]
    with pgbouncer(tmp_path, database.url, "transaction", query_wait_timeout=1, admin_users=user) as url:
        with closing(psycopg.connect(url, dbname="pgbouncer", autocommit=True)) as admin:
            admin.pgconn.exec_(b"pause")
        ended = run_here(with_postgres(prepared(), url), *command.split())
    said = ended.output + ended.errors
    assert ended.code == 1 and "raise its size, or start Postgres behind it" in said, said
    assert "Traceback" not in said and "grant what is missing" not in said and "postgres.schema" not in said


def test_a_pool_of_one_is_unavailable(tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_session, "LIMIT_S", 0.5)
    with pgbouncer(tmp_path, database.url, "session", default_pool_size=1) as url:
        with pytest.raises(PostgresUnavailable, match="raise the size of the pool"):
            connect(PostgresSettings(url=SecretStr(url)))


@pytest.mark.guarantee("P8.29")
@pytest.mark.parametrize("command", ["sink", "sweeper", "rebuild"])
def test_no_service_shares_its_session(prepared: SettingsFactory, run_here: RunHere, pooled: str, command: str) -> None:
    ended = run_here(with_postgres(prepared(), pooled), command)
    assert ended.code == 2 and "pool_mode = transaction" in ended.output + ended.errors
    assert left_behind(pooled) == set()


@pytest.mark.guarantee("P8.29")
def test_what_needs_no_session_works_and_leaves_nothing_behind(at: Scenario, run_here: RunHere, pooled: str) -> None:
    at.show_dead_letters(2)
    settings, group = with_postgres(at.settings, pooled), f"group={at.group}"
    doctor = run_here(settings, "doctor", "sink", "sweeper", "redrive")
    assert doctor.code == 2 and "pool_mode = transaction" in doctor.output, doctor.output
    for arguments in (
        ("db", "status"),
        ("db", "migrate"),
        *(("query", "dead_letters_by_reason") for _ in range(7)),
        ("dlq", "list", group),
        ("dlq", "show", str(at.place())),
        ("dlq", "redrive", group, "--without-members", "--reason", "fixed", "--send"),
        ("rewind", "--to-earliest"),
    ):
        ended = run_here(settings, *arguments)
        assert ended.code == 0, (arguments, ended)
        assert left_behind(pooled) == set(), arguments
    assert len(at.sent()) == 2
