"""P8: a source checks the certificate of Postgres, and survives refusals and silence without showing a record."""

from __future__ import annotations

import urllib.error
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.conftest import SettingsFactory
from tests.integration.connect.exporting import Exporting
from tests.integration.connect.families import SourceFamily
from tests.support.certificates import Authority
from tests.support.connect_connectors import Connectors
from tests.support.connect_rest import ConnectRest
from tests.support.database import Database
from tests.support.naming import Names
from tests.support.stack import Stack
from tests.support.tls_front import TlsFront
from tests.support.topics import Topics
from wait_registry.local.connect_worker import ConnectWorker

pytestmark = pytest.mark.parametrize("source_family", ["debezium"], indirect=True)

Trusting = Callable[[Authority], Exporting]


@pytest.fixture
def ours(tmp_path: Path) -> Authority:
    """The authority that signed the certificate of Postgres."""
    return Authority(tmp_path, "ours")


@pytest.fixture
def trusting(
    ours: Authority,
    source_family: SourceFamily,
    connect: ConnectWorker,
    names: Names,
    topics: Topics,
    prepared: SettingsFactory,
    stack: Stack,
) -> Iterator[Trusting]:
    """Makes sources that find Postgres behind TLS and trust one authority."""
    server = urlsplit(stack.postgres_url)
    assert server.port is not None
    with TlsFront(server.port, ours.issue("database", "IP:127.0.0.1")) as front:
        made: list[Exporting] = []

        def make(authority: Authority) -> Exporting:
            checked = f"sslmode=verify-full&sslrootcert={authority.certificate_file}"
            seen = f"postgresql://{server.username}@127.0.0.1:{front.port}{server.path}?{checked}"
            settings = prepared({"connect.settle_s": 0, "connect.postgres_url": seen})
            made.append(Exporting(source_family, Connectors(ConnectRest(connect.url), names), topics, settings))
            return made[-1]

        yield make
        for own in made:
            own.close()


def test_a_source_trusts_the_authority_of_the_address(ours: Authority, trusting: Trusting) -> None:
    exporting = trusting(ours)
    exporting.expire(1, 1)
    exporting.start_source()
    assert exporting.wait_exported(1) == [1]


def test_a_source_refuses_another_authority(tmp_path: Path, trusting: Trusting) -> None:
    exporting = trusting(Authority(tmp_path, "foreign"))
    with pytest.raises(urllib.error.HTTPError) as refused:
        exporting.start_source()
    assert refused.value.code == 400
    assert "SSL" in refused.value.read().decode()


# A number, as all bodies of `Exporting`.
REFUSED = 424_242
IN_HEX = str(REFUSED).encode().hex()


def test_a_refused_row_is_in_no_log(exporting: Exporting, database: Database, connect: ConnectWorker) -> None:
    begun = connect.log.stat().st_size
    with database.connect(exporting.settings) as connection:
        connection.execute(f"alter table expired_outbox add constraint refusing check (body <> '{REFUSED}')".encode())
        exporting.expire(REFUSED, REFUSED)
        exporting.start_source()
        exporting.wait_until(lambda: "refusing" in said(connect, begun), "the error in the worker's log")
        connection.execute("alter table expired_outbox drop constraint refusing")
    assert exporting.wait_exported(1) == [REFUSED]
    assert str(REFUSED) not in said(connect, begun)
    assert IN_HEX not in said(connect, begun)


def test_a_silent_connection_is_closed_and_the_export_continues(
    exporting: Exporting, database: Database, connect: ConnectWorker
) -> None:
    begun = connect.log.stat().st_size
    topics = exporting.settings.wait.topic, exporting.settings.dead_letter.topic
    with database.connect(exporting.settings) as holder:
        # Else Postgres would answer that the lock is held, long before.
        holder.execute("alter function fill_expired_outbox set lock_timeout = 0")
        with holder.transaction():
            holder.execute("select fill_expired_outbox(%s, 0, 1, 0, %s, 1)", topics)
            exporting.expire(1, 3)
            exporting.start_source(driver__socketTimeout="2")
            exporting.wait_until(lambda: "Read timed out" in said(connect, begun), "the end of the silent connection")
    assert exporting.wait_exported(3) == [1, 2, 3]


def said(worker: ConnectWorker, begun: int) -> str:
    """Return what the worker's log has after these bytes."""
    return worker.log.read_bytes()[begun:].decode("utf-8", "replace")
