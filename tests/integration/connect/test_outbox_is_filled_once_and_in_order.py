"""The outbox for Connect sources: what is due comes into it once, in an order that can be read on from."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial

import psycopg
import pytest

from tests.conftest import SettingsFactory
from tests.integration.connect.outbox import DEAD_LETTER, POSITION, Connection, fill, places, register
from tests.support.connect_connectors import CONFIGS
from tests.support.database import Database
from tests.support.waiting import wait_until
from wait_registry.cli.connect.connector_file import read_connector
from wait_registry.cli.connect.variables import variable
from wait_registry.settings.root import Settings

WAITS_FOR_US = "select pg_backend_pid() = any(pg_blocking_pids(%s))"


@pytest.fixture
def settings(settings_for: SettingsFactory, database: Database) -> Settings:
    made = settings_for({"connect.settle_s": 0})
    database.install(made)
    return made


@pytest.fixture
def connection(settings: Settings, database: Database) -> Iterator[Connection]:
    with database.connect(settings) as opened:
        yield opened


def test_a_due_registration_comes_in_once_and_whole(connection: Connection) -> None:
    connection.execute(
        """
        insert into wait (wait_expiration_uuid, original_topic, original_partition, original_offset, original_key,
            original_timestamp_ms, original_timestamp_type, original_headers, wait_expiration_time, body,
            consumer_group, instance, delivery, dead_letter_topic, expiry_policy, max_deliveries, wait_topic,
            wait_partition, wait_offset)
        values ('whole', 'orders', 3, 77, '\\x00ff', -1, 'none', '[["a", null], ["a", ""]]', now() - interval '1 h',
            convert_to(repeat('body', 100000), 'UTF8'), 'group', 'host', 2, 'dlq', 'redeliver', 9, 'wait', 1, 5)
        """
    )
    register(connection, "later", 0, 8, expires_in_s=3600)
    register(connection, "within the skew allowance", 0, 9, expires_in_s=-1)
    register(connection, "with little", 0, 7)
    assert [fill(connection), fill(connection)] == [2, 0]
    alike = connection.execute(
        """
        select wait_expiration_uuid, to_jsonb(wait) @> to_jsonb(outbox) - 'id' - 'created_at'
        from wait join expired_outbox as outbox using (wait_expiration_uuid) order by outbox.id
        """
    ).fetchall()
    assert alike == [("whole", True), ("with little", True)]


def test_a_newer_registration_of_an_id_is_another_one(connection: Connection) -> None:
    register(connection, "again", 2, 10)
    assert fill(connection) == 1
    connection.execute("update wait set wait_offset = 20 where wait_expiration_uuid = 'again'")
    assert [fill(connection), fill(connection)] == [1, 0]
    assert places(connection) == [("again", 2, 10), ("again", 2, 20)]


def test_the_offsets_of_a_topic_made_anew_hide_nothing(connection: Connection) -> None:
    register(connection, "old", 0, 0)
    assert fill(connection) == 1
    connection.execute("delete from wait")
    register(connection, "new", 0, 0)
    assert fill(connection) == 1


def test_a_row_that_comes_back_is_not_exported_again(connection: Connection) -> None:
    register(connection, "replayed", 0, 3)
    assert fill(connection) == 1
    connection.execute("delete from wait")
    assert fill(connection) == 0
    register(connection, "replayed", 0, 3)
    assert fill(connection) == 0


def test_the_oldest_of_all_partitions_come_first_and_no_more_than_asked_for(connection: Connection) -> None:
    for number in range(12):
        register(connection, f"w{number}", number % 3, number, expires_in_s=-600 + number)
    assert [fill(connection, 5) for _ in range(4)] == [5, 5, 2, 0]
    assert places(connection) == [(f"w{number}", number % 3, number) for number in range(12)]


def test_large_rows_come_in_a_few_at_a_time_and_the_largest_alone(connection: Connection) -> None:
    for number, size in enumerate((1_000, 3_000, 1_000, 50_000, 1_000)):
        register(connection, f"w{number}", number % 2, number, expires_in_s=-600 + number)
        connection.execute("update wait set body = %s where wait_offset = %s", (bytes(size), number))
    assert [fill(connection, max_bytes=4_000) for _ in range(4)] == [2, 2, 1, 0]
    assert [wait_id for wait_id, _, _ in places(connection)] == [f"w{number}" for number in range(5)]


@pytest.mark.guarantee("P3.18", "C.6")
def test_where_our_sink_runs_a_row_waits_until_the_view_is_complete_up_to_its_expiry(connection: Connection) -> None:
    for partition in range(3):
        register(connection, f"w{partition}", partition, 1, expires_in_s=-60)
    # Complete to 56 s ago and to 54 s ago: before and after expiry and skew allowance; partition 2 has no position.
    connection.execute(POSITION, (0, timedelta(seconds=-56)))
    connection.execute(POSITION, (1, timedelta(seconds=-54)))
    assert [fill(connection), fill(connection)] == [1, 0]
    assert places(connection) == [("w1", 1, 1)]
    connection.execute("update sink_progress set position_time = now()")
    connection.execute(POSITION, (2, timedelta()))
    assert fill(connection) == 2
    # Another topic's sink says nothing about this one's.
    connection.execute("update sink_progress set topic = 'another', position_time = '-infinity'")
    register(connection, "ungated", 0, 2)
    assert fill(connection) == 1


@pytest.mark.parametrize("reading", ["wait", "dlq"])
def test_while_a_topic_is_read_for_the_first_time_no_row_is_due(connection: Connection, reading: str) -> None:
    for partition in range(2):
        register(connection, f"w{partition}", partition, 1)
        connection.execute(POSITION, (partition, timedelta()))
    connection.execute("insert into sink_progress values (%s, 'id', 2, 9, now(), now(), 10)", (reading,))
    assert fill(connection) == 0
    connection.execute("update sink_progress set next_offset = 10 where read_until = 10")
    assert fill(connection) == 2


@pytest.mark.guarantee("P1.15", "C.1")
def test_a_tombstone_follows_the_dead_letter_of_its_very_registration(connection: Connection) -> None:
    for number, wait_id in enumerate(("exported", "failed", "registered again", "not yet")):
        register(connection, wait_id, 0, number)
    assert fill(connection) == 4
    assert places(connection, "expired_tombstone") == []
    connection.execute(DEAD_LETTER, (0, "expired", "exported", 0, 0))
    connection.execute(DEAD_LETTER, (1, "failed", "failed", 0, 1))
    connection.execute(DEAD_LETTER, (2, "expired", "registered again", 0, 2))
    connection.execute("update wait set wait_offset = 9 where wait_expiration_uuid = 'registered again'")
    assert [fill(connection), fill(connection)] == [1, 0]
    assert places(connection, "expired_tombstone") == [("exported", 0, 0)]


@pytest.mark.guarantee("P4.15")
def test_what_the_log_shows_as_exported_gets_its_tombstone_only_whatever_was_restored(connection: Connection) -> None:
    register(connection, "exported", 0, 0)
    connection.execute(DEAD_LETTER, (0, "expired", "exported", 0, 0))
    assert fill(connection) == 0
    assert places(connection, "expired_tombstone") == [("exported", 0, 0)]


def test_open_is_what_stands_and_has_no_dead_letter_as_far_as_is_known(connection: Connection) -> None:
    for number, wait_id in enumerate(("open", "in the log", "resolved", "registered again")):
        register(connection, wait_id, 0, number)
    fill(connection)
    connection.execute(DEAD_LETTER, (0, "expired", "in the log", 0, 1))
    connection.execute("delete from wait where wait_expiration_uuid = 'resolved'")
    connection.execute("update wait set wait_offset = 9 where wait_expiration_uuid = 'registered again'")
    assert places(connection, "expired_outbox_open") == [("open", 0, 0)]
    fill(connection)
    assert places(connection, "expired_tombstone_open") == [("in the log", 0, 1)]
    connection.execute("delete from wait")
    assert places(connection, "expired_tombstone_open") == []


def test_the_query_of_a_jdbc_source_fills_the_outbox_also_when_it_has_nothing_to_read(
    settings: Settings, connection: Connection
) -> None:
    register(connection, "first", 0, 0)
    waits = settings.model_copy(update={"wait": settings.wait.model_copy(update={"topic": "wait"})})
    found = read_connector(CONFIGS / "expired.source.jdbc.json", partial(variable, settings=waits))
    query = f'{found.config["query"]} WHERE "id" > %s ORDER BY "id" ASC'.encode()
    assert connection.execute(query, (-1,)).fetchall() == []
    assert places(connection) == [("first", 0, 0)]
    assert len(connection.execute(query, (-1,)).fetchall()) == 1
    assert connection.execute(query, (10,)).fetchall() == []


@pytest.mark.guarantee("P4.14")
def test_a_second_filler_waits_for_the_first_and_numbers_become_visible_in_order(
    settings: Settings, database: Database, connection: Connection
) -> None:
    for number in range(4):
        register(connection, f"w{number}", 0, number, expires_in_s=-600 + number)
    with database.connect(settings) as second, ThreadPoolExecutor(1) as pool:
        with connection.transaction():
            assert fill(connection, 2) == 2
            waiting = pool.submit(fill, second, 1)
            wait_until(lambda: _waits_for(connection, second), 30, "the second filler to wait for the first")
            with database.connect(settings) as reader:
                assert places(reader) == []
        assert waiting.result(30) == 1
    assert [wait_id for wait_id, _, _ in places(connection)] == ["w0", "w1", "w2"]


def test_a_filler_that_waits_for_too_long_is_told_so_before_its_connection_is_given_up(
    settings: Settings, database: Database, connection: Connection
) -> None:
    (shipped,) = connection.execute(
        "select proconfig from pg_proc where oid = 'fill_expired_outbox'::regproc"
    ).fetchall()
    assert "lock_timeout=30s" in shipped[0]
    for family, property_name in (("debezium", "driver.socketTimeout"), ("jdbc", "connection.url")):
        found = read_connector(CONFIGS / f"expired.source.{family}.json", partial(variable, settings=settings)).config
        assert int(found[property_name].rpartition("socketTimeout=")[2].partition("&")[0]) > 30
    connection.execute("alter function fill_expired_outbox set lock_timeout = '100ms'")
    with database.connect(settings) as second, connection.transaction():
        fill(connection)
        with pytest.raises(psycopg.errors.LockNotAvailable):
            fill(second)


def test_many_fillers_at_once_lose_and_double_nothing(
    settings: Settings, database: Database, connection: Connection
) -> None:
    for number in range(300):
        register(connection, f"w{number}", number % 4, number)
    seen: list[list[int]] = [[] for _ in range(4)]

    def run(own: list[int]) -> None:
        # What an incrementing source does: fill, and read on from the last number.
        with database.connect(settings) as mine:
            last = 0
            while fill(mine, 7):
                numbers = mine.execute("select id from expired_outbox where id > %s order by id", (last,)).fetchall()
                own += [number for (number,) in numbers]
                last = own[-1]

    threads = [threading.Thread(target=run, args=(own,)) for own in seen]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(places(connection)) == sorted((f"w{number}", number % 4, number) for number in range(300))
    everything = [number for (number,) in connection.execute("select id from expired_outbox order by id").fetchall()]
    for own in seen:
        assert own == everything[: len(own)], "a number became visible before a lower one"


def test_a_filler_that_is_killed_leaves_nothing_behind_and_nobody_waiting(
    settings: Settings, database: Database, connection: Connection
) -> None:
    register(connection, "open", 0, 0)
    with database.connect(settings) as killed, ThreadPoolExecutor(1) as pool:
        killed.autocommit = False
        assert fill(killed) == 1
        waiting = pool.submit(fill, connection)
        wait_until(lambda: _waits_for(killed, connection), 30, "the other filler to wait")
        with database.connect(settings) as other:
            other.execute("select pg_terminate_backend(%s)", (killed.info.backend_pid,))
        assert waiting.result(30) == 1
        with pytest.raises(psycopg.OperationalError):
            killed.execute("select 1")
    assert places(connection) == [("open", 0, 0)]


def test_what_was_finished_a_week_ago_is_forgotten_and_what_still_stands_is_not(connection: Connection) -> None:
    for number, wait_id in enumerate(("old and finished", "old and standing", "finished of late")):
        register(connection, wait_id, 0, number)
    fill(connection)
    for number in range(3):
        connection.execute(
            'insert into dead_letter (topic, partition, "offset", reason, wait_expiration_uuid, wait_partition, '
            "wait_offset) select 'dlq', 0, id, 'expired', wait_expiration_uuid, wait_partition, wait_offset "
            "from expired_outbox where wait_offset = %s",
            (number,),
        )
    fill(connection)
    for table in ("expired_outbox", "expired_tombstone"):
        assert len(places(connection, table)) == 3
        old = f"update {table} set created_at = now() - interval '8 days' where wait_expiration_uuid like 'old%'"
        connection.execute(old.encode())
    connection.execute("delete from wait where wait_expiration_uuid <> 'old and standing'")
    fill(connection)
    for table in ("expired_outbox", "expired_tombstone"):
        assert [wait_id for wait_id, _, _ in places(connection, table)] == ["old and standing", "finished of late"]


def _waits_for(holder: Connection, waiting: Connection) -> bool:
    row = holder.execute(WAITS_FOR_US, (waiting.info.backend_pid,)).fetchone()
    return row is not None and bool(row[0])


def test_a_header_name_that_no_client_can_send_keeps_its_row_out_of_the_outbox_and_holds_nothing_up(
    connection: Connection,
) -> None:
    for number, headers in enumerate(['[[{"base64":"7aCA"},"MQ=="]]', '[["a",null],[{"base64":"YQA="},null]]', "[]"]):
        register(connection, f"id-{number}", 0, number)
        connection.execute("update wait set original_headers = %s where wait_offset = %s", (headers, number))
    register(connection, "id-3", 0, 3)
    assert fill(connection) == 2
    assert [wait_id for wait_id, *_ in places(connection)] == ["id-2", "id-3"]
