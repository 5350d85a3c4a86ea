-- Dead letters of weeks, and their late outcomes: every second one expired, and every tenth of those was finished late.
-- Two per second until eight days ago: two million take less than the retention of 30 days, and none is within the span
-- that an incident query asks for. Their topic was recreated since: the sink doesn't ask for them.
with made as materialized (
    select
        i, '00000000-0000-8000-a000-' || lpad(to_hex(i), 12, '0') as wait_id,
        now() - interval '8 days' - make_interval(secs => (%(letters)s - i) / 2.0) as at,
        i %% 2 = 0 as expired, i %% 20 = 0 as late
    from generate_series(1, %(letters)s::bigint) as i
), outcomes as (
    insert into late_outcome (
        wait_expiration_uuid, outcome, wait_topic, wait_partition, wait_offset, outcome_time, created_at)
    select wait_id, 'done', %(topic)s || '@before', i %% %(partitions)s, i / %(partitions)s, at, at
    from made where late
)
insert into dead_letter (
    topic, partition, "offset", dead_letter_time, reason, error_class, error_message, error_stacktrace,
    wait_expiration_uuid, original_topic, original_partition, original_offset, original_timestamp,
    original_timestamp_ms, original_timestamp_type, consumer_group, instance, wait_partition, wait_offset, key, headers,
    body, finished_late, finished_outcome, finished_time, created_at)
select
    %(topic)s || '.dlq@before', i %% %(input_partitions)s, i / %(input_partitions)s, at,
    case when expired then 'expired' else 'failed' end,
    case when not expired then 'shop.RefusedError' end,
    case when not expired then 'the shop refuses order ' || i end,
    case when not expired then repeat('  File "/srv/shop/orders.py", line 17, in handle' || E'\n', 8) end,
    wait_id, %(input_topic)s, i %% %(input_partitions)s, (%(rows)s + i) / %(input_partitions)s, at,
    (extract(epoch from at) * 1000)::bigint, 'create', %(group)s, 'host-' || i %% 16, i %% %(partitions)s,
    i / %(partitions)s, convert_to('customer-' || i * 7919 %% %(customers)s, 'UTF8'), '[["tenant", "YWNtZQ=="]]',
    convert_to(repeat(md5(i::text), 6), 'UTF8'), late, case when late then 'done' end, case when late then at end, at
from made
