"""P4, P8: each registration has one dead letter, whatever dies or goes silent during a source's export."""

from __future__ import annotations

import re
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.conftest import SettingsFactory
from tests.integration.connect.exporting import Exporting, ExportingFactory
from tests.integration.connect.outbox import EXPORTED
from tests.support.certificates import Authority
from tests.support.connect_connectors import CONFIGS
from tests.support.connect_rest import ConnectRest
from tests.support.connect_worker import ConnectWorker
from tests.support.database import Database
from tests.support.own_postgres import own_postgres
from tests.support.stack import Stack
from tests.support.tls_front import TlsFront
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from waitreg.local.ports import free_ports
from waitreg.local.postgres import EmbeddedPostgres

ROWS = 1_000
# Many small transactions: rows come into the outbox in small batches, which takes seconds for all of them.
AT_ONCE = {"sweeper.chunk_rows": 100, "connect.settle_s": 0}
SERVER = {"wal_level": "logical", "wal_sender_timeout": "3s"}


@pytest.fixture
def postgres() -> Iterator[EmbeddedPostgres]:
    """One to be killed, which soon disconnects a client that is frozen."""
    with own_postgres(settings=SERVER) as server:
        yield server


@pytest.fixture
def on_it(
    postgres: EmbeddedPostgres, exporting_from: ExportingFactory, topics: Topics, settings_for: SettingsFactory
) -> Exporting:
    """A source over that Postgres, in mid-export."""
    settings = settings_for({"postgres.url": postgres.url, **AT_ONCE})
    topics.create_own(settings)
    Database(postgres.url).install(settings)
    own = exporting_from(settings)
    own.start()
    # With the second its snapshot is over: a source that is interrupted before repeats it, as documented.
    for number in (1, 2):
        own.expire(number, number)
        assert own.wait_exported(number) == list(range(1, number + 1))
    own.expire(3, ROWS)
    own.wait_until(lambda: own.count_written() > 2, "the first dead letters of many")
    return own


@pytest.mark.guarantee("C.1", "C.4")
@pytest.mark.timeout(360)
def test_kills_double_and_lose_no_export(on_it: Exporting, connect: ConnectWorker, postgres: EmbeddedPostgres) -> None:
    (name,) = on_it.started
    connect.kill()
    written = on_it.count_written()
    connect.start()
    on_it.wait_until(lambda: on_it.count_written() > written, "more dead letters")
    on_it.expire(ROWS + 1, 2 * ROWS)
    postgres.kill()
    postgres.start()

    def all_there() -> bool:
        # What `waitreg connect watch` is for.
        if "FAILED" in on_it.connectors.rest.states(name):
            on_it.connectors.rest.restart_failed(name)
        return on_it.count_written() >= 2 * ROWS

    wait_until(all_there, 120, "all dead letters", poll_s=0.5)
    assert on_it.wait_exported(2 * ROWS) == list(range(1, 2 * ROWS + 1))
    on_it.expire(2 * ROWS + 1, 2 * ROWS + 1)
    assert on_it.wait_exported(2 * ROWS + 1) == list(range(1, 2 * ROWS + 2))


@pytest.mark.guarantee("C.4")
@pytest.mark.timeout(360)
def test_a_task_that_was_frozen_and_replaced_exports_nothing(
    on_it: Exporting, connect: ConnectWorker, connect_plugin: Path, kafka: str, tmp_path: Path
) -> None:
    (name,) = on_it.started
    own = {"bootstrap.servers": kafka, "group.id": connect.group}
    second = ConnectWorker(tmp_path / "second", free_ports(1)[0], own, plugins=[connect_plugin])
    on_it.expire(ROWS + 1, 2 * ROWS)
    connect.pause()
    try:
        second.start()
        other = ConnectRest(second.url)
        on_second = f"127.0.0.1:{second.port}"
        wait_until(lambda: other.runs_on(name) == on_second, 120, "the task on the second worker")
        wait_until(lambda: on_it.count_written() >= 2 * ROWS, 120, "all dead letters", poll_s=0.5)
        connect.resume()
        on_it.expire(2 * ROWS + 1, 2 * ROWS + 1)
        wait_until(lambda: ConnectRest(connect.url).runs_on(name) == on_second, 120, "what the first worker knows now")
        assert on_it.wait_exported(2 * ROWS + 1) == list(range(1, 2 * ROWS + 2))
    finally:
        connect.resume()
        second.stop()


@pytest.mark.guarantee("C.8")
def test_after_a_lost_slot_a_new_start_exports_only_what_is_open(exporting: Exporting, database: Database) -> None:
    name, rest, settings = exporting.start(), exporting.connectors.rest, exporting.settings
    exporting.expire(1, 10)
    assert exporting.wait_exported(10) == list(range(1, 11))
    rest.stop(name)
    exporting.drop_slots()
    with database.connect(settings) as connection:
        connection.execute(EXPORTED)
        exporting.expire(11, 12)
        # What came into the outbox while no slot kept its log.
        topics = settings.wait.topic, settings.dead_letter.topic
        filled = connection.execute("select fill_expired_outbox(%s, 0, 100, 0, %s, 1000000)", topics).fetchone()
        assert filled == (2,)
    rest.resume(name)
    assert "no longer available on the server" in exporting.connectors.wait_failed(name)
    rest.stop(name)
    rest.forget_offsets(name)
    rest.resume(name)
    exporting.connectors.wait_running(name)
    exporting.expire(13, 13)
    assert exporting.wait_exported(13) == list(range(1, 14))


@pytest.mark.guarantee("C.7")
def test_with_the_documented_permissions_sources_export_and_keep_no_wal(
    exporting: Exporting, topics: Topics, database: Database
) -> None:
    settings = exporting.settings
    schema = settings.postgres.schema_name
    roles = [f"{schema}_{what}" for what in ("source", "tombstones")]
    with database.connect(settings) as owner:
        owner.execute(documented_rights(schema, *roles).encode())
        owner.execute("create table busy as select 1 as n")
        try:
            for connector, role in zip(("expired.source", "expired.tombstones"), roles, strict=True):
                exporting.start(connector, {"database.user": role, "publication.autocreate.mode": "disabled"})
            begun = owner.execute("select pg_current_wal_lsn()::text").fetchone()
            assert begun is not None

            def released() -> bool:
                owner.execute("insert into busy select generate_series(1, 100)")
                question = "select bool_and(confirmed_flush_lsn > %s) from pg_replication_slots where slot_name ~ %s"
                row = owner.execute(question, (begun[0], schema)).fetchone()
                return row is not None and bool(row[0])

            exporting.wait_until(released, "both slots to release what other tables write")
            exporting.expire(1, 1)
            # Due in a second from now, without any write then.
            owner.execute("update wait set wait_expiration_time = now() - interval '4 seconds'")
            assert exporting.wait_exported(1) == [1]
            owner.execute(EXPORTED)
            exporting.wait_until(lambda: len(topics.read(settings.wait.topic)) == 1, "its tombstone")
        finally:
            exporting.close()
            owner.execute(f"drop owned by {', '.join(roles)}; drop role {', '.join(roles)}".encode())


def documented_rights(schema: str, source: str, tombstones: str) -> str:
    """Return what connect-configs/README.md says about roles, with these names and no passwords."""
    blocks = re.findall(r"```sql\n(.*?)```", (CONFIGS / "README.md").read_text("utf-8"), re.DOTALL)
    (rights,) = [block for block in blocks if "create role waitreg_source" in block]
    for documented, own in (
        (" password '...'", ""),
        ("on schema schema", f"on schema {schema}"),
        ("waitreg_schema_", f"waitreg_{schema}_"),
        ("waitreg_source", source),
        ("to waitreg_tombstones", f"to {tombstones}"),
        ("role waitreg_tombstones", f"role {tombstones}"),
    ):
        rights = rights.replace(documented, own)
    return rights


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


def test_the_export_continues_after_silence(exporting: Exporting, database: Database, connect: ConnectWorker) -> None:
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
