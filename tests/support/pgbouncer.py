"""A real pgbouncer in front of a Postgres, for one test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tests.support.chosen_stack import not_tested
from tests.support.own_postgres import reachable
from tests.support.waiting import wait_until
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
