"""What is read between two chunks finds its rows by an index, however many dead letters and marks there are."""

from __future__ import annotations

import pytest

from redrive.outcomes import ALL, QUERIES
from tests.conftest import SettingsFactory
from tests.integration.queries.plan import nodes_of
from tests.integration.sink.test_statement_plans import is_whole
from tests.support.database import Database

ROWS = 200_000
# Of job 0 are 1,000 marks, and of these 10 came back.
FILL = f"""
    insert into dead_letter_mark (
        "offset", job, kind, state, wait_expiration_uuid, number, consumer_group, original_topic, original_partition,
        original_offset, target_topic, target_partition, target_offset, next_wait_id, delivery, marked_at, marked_by
    )
    select i, 'job-' || i / 1000, 'redrive', 'redriven', i::text, 1, 'shop', 'orders', i % 8, i, 'target', i % 8, i,
        'next ' || i, 2, now(), 'anna'
    from generate_series(0, {ROWS} - 1) as i;
    insert into dead_letter (
        topic, partition, "offset", reason, wait_expiration_uuid, consumer_group, original_topic, original_partition,
        original_offset, delivery
    )
    select 'dlq', 0, i, 'failed', i::text, 'shop', 'orders', i % 8, i, 1 from generate_series(0, {ROWS} - 1) as i
    union all
    select 'dlq', 1, i, 'failed', 'next ' || i, 'shop', 'orders', i % 8, i, 2 from generate_series(0, 999, 100) as i;
    insert into wait (
        wait_expiration_uuid, original_topic, original_partition, original_offset, consumer_group, delivery,
        wait_expiration_time, wait_topic, wait_partition, wait_offset
    )
    select 'other ' || i, 'orders', i % 8, i + 1000000, 'shop', 1, now(), 'wait', i % 8, i
    from generate_series(0, {ROWS} - 1) as i;
    analyze dead_letter; analyze dead_letter_mark; analyze wait;
"""
VALUES = {
    "job": "job-0",
    "after": -1,
    "until": ALL,
    "wait_id": "none",
    "topics": ["target"] * 8,
    "partitions": list(range(8)),
    "committed": [ROWS] * 8,
}


@pytest.mark.parametrize(
    ("query", "rows"), [("comebacks", 10), ("dead_again", 10), ("registered", 0), ("sent", 1000), ("targets", 8)]
)
def test_outcomes_read_only_the_rows_of_their_job(
    query: str, rows: int, settings_for: SettingsFactory, database: Database
) -> None:
    settings = settings_for({})
    database.install(settings)
    with database.connect(settings) as connection:
        connection.execute(FILL)
        asked = QUERIES[query].encode()
        [[document]] = connection.execute(b"explain (format json) " + asked, VALUES).fetchall()
        assert [node for node in nodes_of(document[0]["Plan"]) if is_whole(node)] == []
        assert len(connection.execute(asked, VALUES).fetchall()) == rows
