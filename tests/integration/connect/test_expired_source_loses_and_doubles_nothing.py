"""P4: each registration has one dead letter under read_committed, whatever dies during a source's export."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import SettingsFactory
from tests.integration.connect.exporting import Exporting, ExportingFactory
from tests.integration.connect.outbox import EXPORTED
from tests.support.connect_connectors import CONFIGS
from tests.support.connect_rest import ConnectRest
from tests.support.database import Database
from tests.support.own_postgres import own_postgres
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.local.connect_worker import ConnectWorker
from wait_registry.local.ports import free_ports
from wait_registry.local.postgres import EmbeddedPostgres

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
def test_after_kills_of_worker_and_postgres_each_is_exported_once(
    on_it: Exporting, connect: ConnectWorker, postgres: EmbeddedPostgres
) -> None:
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
    second = ConnectWorker(tmp_path / "second", free_ports(1)[0], kafka, plugins=[connect_plugin], group=connect.group)
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
