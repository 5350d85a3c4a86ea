"""The checker's own SQL reads what the sink's tables hold, null and empty apart."""

from __future__ import annotations

from tests.chaos.history.tables import read_tables
from tests.chaos.history.views import Views
from tests.conftest import SettingsFactory
from tests.support.database import Database
from tests.support.waiting import wait_until
from wait_registry.demo.fingerprint import fingerprint
from wait_registry.local.ports import LOOPBACK, free_ports
from wait_registry.settings.root import Settings


def fill(database: Database, settings: Settings) -> None:
    with database.connect(settings) as connection:
        connection.execute(
            "insert into wait (wait_expiration_uuid, original_topic, original_partition, original_offset, original_key,"
            " original_timestamp_ms, original_headers, wait_expiration_time, body, consumer_group, instance, delivery,"
            " dead_letter_topic, expiry_policy, max_deliveries, wait_topic, wait_partition, wait_offset,"
            " original_timestamp_type) values"
            " ('id', 'orders', 1, 2, '', 3, '[[\"a\", null], [\"a\", \"\"]]', '2026-11-21T02:20:00.123Z', null,"
            " 'billing', 'host', 1, 'dlq', 'dlq', 3, 'wait', 4, 5, 'append')"
        )
        connection.execute(
            "insert into wait (wait_expiration_uuid, original_topic, wait_expiration_time, wait_topic, wait_partition,"
            " wait_offset) values ('bare', 'orders', now(), 'wait', 4, 6)"
        )
        connection.execute(
            'insert into dead_letter (topic, partition, "offset", dead_letter_time, reason, wait_expiration_uuid,'
            " original_topic, original_partition, original_offset, original_timestamp_ms, wait_partition, wait_offset,"
            " consumer_group, instance, delivery, key, headers, body, finished_late, original_timestamp_type,"
            " error_class, error_message, error_stacktrace) values"
            " ('dlq', 0, 7, '2026-11-21T02:20:00.5Z', 'expired', 'id', 'orders', 1, 2, 3, 4, 5, 'billing', 'host', 1,"
            " null, '[[{\"base64\": \"AA==\"}, \"Yg==\"]]', '\\xff', true, 'none', 'ValueError', '', null)"
        )
        connection.execute(
            "insert into dead_letter (topic, partition, \"offset\", headers) values ('dlq', 0, 8, '[[\"a\"]]')"
        )
        connection.execute(
            "insert into quarantine (topic, partition, \"offset\", error) values ('wait', 4, 9, 'no id')"
        )
        connection.execute("insert into sink_progress values ('wait', 'topic id', 4, 10, now(), now())")


def test_each_table_is_read_whole(prepared: SettingsFactory, database: Database) -> None:
    settings = prepared()
    fill(database, settings)
    tables = read_tables(database.url, settings.postgres.schema_name)
    waits = {row.wait_id: row for row in tables.wait}
    seen = waits["id"].registration
    assert seen is not None
    assert seen.content == fingerprint(b"", None, [("a", None), ("a", b"")])
    assert (waits["id"].place, seen.original, seen.expires_at_ms) == ((4, 5), ("orders", 1, 2), 1_795_227_600_123)
    assert seen.timestamp_type == "append"
    assert (waits["bare"].registration, waits["bare"].unreadable) == (None, "column original_partition is null")
    letter, foreign = sorted(tables.dead_letter, key=lambda row: row.place)
    assert letter.content == fingerprint(None, b"\xff", [("\0", b"b")])
    assert (letter.time_ms, letter.registration, letter.finished_late) == (1_795_227_600_500, (4, 5), True)
    texts = (letter.error_class, letter.error_message, letter.error_stacktrace)
    assert (letter.timestamp_type, *texts) == ("none", "ValueError", "", None)
    assert (foreign.reason, foreign.registration, foreign.content) == (None, None, None)
    assert foreign.unreadable
    assert [(row.place, row.error) for row in tables.quarantine] == [(("wait", 4, 9), "no id")]
    assert [(row.topic, row.partition, row.next_offset) for row in tables.progress] == [("wait", 4, 10)]


def test_they_are_looked_at_again_and_again_and_a_server_that_is_away_is_waited_out(
    prepared: SettingsFactory, database: Database
) -> None:
    settings = prepared()
    with Views(database.url, settings.postgres.schema_name, interval_s=0.01) as views:
        wait_until(lambda: len(views.taken) > 2, 60, "looks at empty tables")
        fill(database, settings)
        wait_until(lambda: views.taken[-1].tables.progress, 60, "a look at what was filled in")
    assert views.taken[0].tables.wait == []
    last = views.taken[-1]
    assert len(last.tables.wait) == len(last.tables.dead_letter) == 2
    assert last.began_ms <= last.ended_ms
    with Views(f"postgresql://{LOOPBACK}:{free_ports(1)[0]}/postgres", "public", interval_s=0.01) as nothing:
        wait_until(lambda: nothing.asked > 2, 60, "looks that nobody answers")
    assert nothing.taken == []
