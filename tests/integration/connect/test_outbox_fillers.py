"""Several clients fill the outbox: its numbers become visible in order, and a killed one leaves nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.integration.connect.outbox import Connection, fill, places, register
from tests.support.connect_connectors import our_connector
from tests.support.database import Database
from tests.support.waiting import wait_until
from wait_registry.settings.tree import Settings

WAITS_FOR_US = "select pg_backend_pid() = any(pg_blocking_pids(%s))"


def test_a_jdbc_source_fills_the_outbox_even_without_rows(outbox_settings: Settings, outbox: Connection) -> None:
    register(outbox, "first", 0, 0)
    waits = outbox_settings.model_copy(update={"wait": outbox_settings.wait.model_copy(update={"topic": "wait"})})
    found = our_connector("expired.source.jdbc.json", waits)
    query = f'{found.config["query"]} WHERE "id" > %s ORDER BY "id" ASC'.encode()
    assert outbox.execute(query, (-1,)).fetchall() == []
    assert places(outbox) == [("first", 0, 0)]
    assert len(outbox.execute(query, (-1,)).fetchall()) == 1
    assert outbox.execute(query, (10,)).fetchall() == []


@pytest.mark.guarantee("P4.14")
def test_numbers_of_two_fillers_are_in_order(outbox_settings: Settings, database: Database, outbox: Connection) -> None:
    for number in range(4):
        register(outbox, f"w{number}", 0, number, expires_in_s=-600 + number)
    with database.connect(outbox_settings) as second, ThreadPoolExecutor(1) as pool:
        with outbox.transaction():
            assert fill(outbox, 2) == 2
            waiting = pool.submit(fill, second, 1)
            wait_until(lambda: _waits_for(outbox, second), 30, "the second filler to wait for the first")
            with database.connect(outbox_settings) as reader:
                assert places(reader) == []
        assert waiting.result(30) == 1
    assert [wait_id for wait_id, _, _ in places(outbox)] == ["w0", "w1", "w2"]


def test_the_lock_of_a_filler_times_out_before_its_connection(
    outbox_settings: Settings, database: Database, outbox: Connection
) -> None:
    (shipped,) = outbox.execute("select proconfig from pg_proc where oid = 'fill_expired_outbox'::regproc").fetchall()
    assert "lock_timeout=30s" in shipped[0]
    for family, property_name in (("debezium", "driver.socketTimeout"), ("jdbc", "connection.url")):
        found = our_connector(f"expired.source.{family}.json", outbox_settings).config
        assert int(found[property_name].rpartition("socketTimeout=")[2].partition("&")[0]) > 30
    outbox.execute("alter function fill_expired_outbox set lock_timeout = '100ms'")
    with database.connect(outbox_settings) as second, outbox.transaction():
        fill(outbox)
        with pytest.raises(psycopg.errors.LockNotAvailable):
            fill(second)


def _waits_for(holder: Connection, waiting: Connection) -> bool:
    row = holder.execute(WAITS_FOR_US, (waiting.info.backend_pid,)).fetchone()
    return row is not None and bool(row[0])
