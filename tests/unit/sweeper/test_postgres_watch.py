"""The sweeper isn't ready while Postgres is frozen or away, whatever its last sweep was."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from sweeper.health import readiness
from sweeper.postgres_watch import LATE_S, PostgresWatch
from tests.support.running_thread import RunningThread
from tests.support.waiting import wait_until
from wait_registry.postgres.open_connections import OpenConnections
from wait_registry.settings.postgres import PostgresSettings
from wait_registry.settings.root import Settings


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A port whose kernel accepts connections, and behind which no server answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def test_a_postgres_that_does_not_answer_is_trouble(silent: socket.socket) -> None:
    port = silent.getsockname()[1]
    postgres = PostgresSettings(url=SecretStr(f"postgresql://127.0.0.1:{port}/none"), connect_timeout_s=300)
    connections, now = OpenConnections(), [0.0]
    watch = PostgresWatch(Settings(postgres=postgres), connections, lambda: now[0])
    assert watch.trouble() is None
    asking = RunningThread(watch.ask_once)
    accepted, _ = silent.accept()
    now[0] = LATE_S + 1
    wait_until(lambda: watch.trouble() == "Postgres hasn't answered for 11 s", what="the trouble")
    assert not readiness(True, None, 1.0, 60.0, None, watch.trouble()).ok
    accepted.close()
    asking.wait_ended()
    assert watch.trouble() not in (None, "Postgres hasn't answered for 11 s"), "the failure"
