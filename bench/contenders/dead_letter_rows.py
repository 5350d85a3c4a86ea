"""Rows of `dead_letter` and `late_outcome` as weeks of work leave them, made by Postgres itself.

Their topics are such as were made anew since, whose rows keep a name of their own: what the sink finds in the topics of
today, and asks for by their names, isn't among them.
"""

from __future__ import annotations

import time
from typing import Final

from bench.contenders.our_settings import connection_to
from bench.contenders.registry_rows import indexed_afterwards, tidy
from bench.contenders.wait_log import CUSTOMERS, GROUP, INPUT_PARTITIONS, INPUT_TOPIC
from bench.harness.row import Bench
from wait_registry.settings.root import Settings

# So many open registrations to one dead letter.
WAITS_A_DEAD_LETTER: Final = 5
# Every second one expired, and every tenth of those was finished late. Two a second until eight days ago: two million
# take less than the retention of 30 days, and none is within the span that an incident query asks for.
AGE: Final = "now() - interval '8 days' - make_interval(secs => (%(letters)s - i) / 2.0)"
WAIT_ID: Final = "'00000000-0000-8000-9000-' || lpad(to_hex(i), 12, '0')"
FILL: Final = f"""
insert into dead_letter (
    topic, partition, "offset", dead_letter_time, reason, error_class, error_message, error_stacktrace,
    wait_expiration_uuid, original_topic, original_partition, original_offset, original_timestamp,
    original_timestamp_ms, original_timestamp_type, consumer_group, instance, delivery, wait_partition, wait_offset,
    key, headers, body, finished_late, finished_outcome, finished_time, created_at)
select
    %(dead_letter_topic)s || '@before', i %% {INPUT_PARTITIONS}, i / {INPUT_PARTITIONS}, at,
    case when expired then 'expired' else 'failed' end,
    case when not expired then 'shop.RefusedError' end,
    case when not expired then 'the shop refuses order ' || i end,
    case when not expired then repeat('  File "/srv/shop/orders.py", line 17, in handle' || E'\n', 8) end,
    {WAIT_ID}, '{INPUT_TOPIC}', i %% {INPUT_PARTITIONS}, (%(rows)s + i) / {INPUT_PARTITIONS}, at,
    (extract(epoch from at) * 1000)::bigint, 'create', '{GROUP}', 'host-' || i %% 16, 3, i %% %(partitions)s,
    i / %(partitions)s, convert_to('customer-' || i * 7919 %% {CUSTOMERS}, 'UTF8'), '[["tenant", "YWNtZQ=="]]',
    convert_to(repeat(md5(i::text), 6), 'UTF8'), late, case when late then 'done' end, case when late then at end, at
from
    generate_series(1, %(letters)s::bigint) as i,
    lateral (select {AGE}, i %% 2 = 0, i %% 20 = 0) as made (at, expired, late)
"""
FILL_LATE: Final = f"""
insert into late_outcome (
    wait_expiration_uuid, outcome, wait_topic, wait_partition, wait_offset, outcome_time, created_at)
select {WAIT_ID}, 'done', %(topic)s || '@before', i %% %(partitions)s, i / %(partitions)s, at, at
from generate_series(20, %(letters)s::bigint, 20) as i, lateral (select {AGE}) as made (at)
"""


def stand_dead_letters(bench: Bench, settings: Settings, rows: int) -> None:
    """Fill an empty `dead_letter` and `late_outcome` with what goes with so many rows of `wait`."""
    began = time.monotonic()
    values = {
        "rows": rows,
        "letters": rows // WAITS_A_DEAD_LETTER,
        "topic": settings.wait.topic,
        "partitions": settings.wait.partitions,
        "dead_letter_topic": settings.dead_letter.topic,
    }
    with connection_to(settings) as connection:
        with indexed_afterwards(connection, settings, "dead_letter", "late_outcome"):
            connection.execute(FILL.encode(), values)
            connection.execute(FILL_LATE.encode(), values)
        tidy(connection)
    bench.say(f"{values['letters']} dead letters stand beside them after {time.monotonic() - began:.0f} s")
