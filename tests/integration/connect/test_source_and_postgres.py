"""P8: a source checks the certificate of Postgres, and survives refusals and silence without showing a record."""

from __future__ import annotations

import urllib.error
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.conftest import SettingsFactory
from tests.integration.connect.exporting import Exporting, ExportingFactory
from tests.support.certificates import Authority
from tests.support.database import Database
from tests.support.stack import Stack
from tests.support.tls_front import TlsFront
from wait_registry.local.connect_worker import ConnectWorker


@pytest.fixture
def front(tmp_path: Path, stack: Stack) -> Iterator[str]:
    """The address of Postgres behind TLS, whose certificate the authority `ours` has signed."""
    server = urlsplit(stack.postgres_url)
    assert server.port is not None
    with TlsFront(server.port, Authority(tmp_path, "ours").issue("database", "IP:127.0.0.1")) as running:
        yield f"postgresql://{server.username}@127.0.0.1:{running.port}{server.path}?sslmode=verify-full"


def test_a_source_trusts_only_the_authority_of_the_address(
    front: str, exporting_from: ExportingFactory, prepared: SettingsFactory, tmp_path: Path
) -> None:
    def trusting(certificate: Path) -> Exporting:
        seen = f"{front}&sslrootcert={certificate}"
        return exporting_from(prepared({"connect.settle_s": 0, "connect.postgres_url": seen}))

    with pytest.raises(urllib.error.HTTPError) as refused:
        trusting(Authority(tmp_path, "foreign").certificate_file).start()
    assert refused.value.code == 400
    assert "SSL" in refused.value.read().decode()
    exporting = trusting(tmp_path / "ours.pem")
    exporting.expire(1, 1)
    exporting.start()
    assert exporting.wait_exported(1) == [1]


# A number, as all bodies of `Exporting`.
REFUSED = 424_242
IN_HEX = str(REFUSED).encode().hex()


def test_a_refused_row_is_in_no_log(exporting: Exporting, database: Database, connect: ConnectWorker) -> None:
    begun = connect.log.stat().st_size
    with database.connect(exporting.settings) as connection:
        connection.execute(f"alter table expired_outbox add constraint refusing check (body <> '{REFUSED}')".encode())
        exporting.expire(REFUSED, REFUSED)
        exporting.start()
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
            exporting.start(changes={"driver.socketTimeout": "2"})
            exporting.wait_until(lambda: "Read timed out" in said(connect, begun), "the end of the silent connection")
    assert exporting.wait_exported(3) == [1, 2, 3]


def said(worker: ConnectWorker, begun: int) -> str:
    """Return what the worker's log has after these bytes."""
    return worker.log.read_bytes()[begun:].decode("utf-8", "replace")
