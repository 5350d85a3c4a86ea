-- Dead letters of the last 30 days, the newest first, most of them redriven, and the marks of each hundredth.
insert into dead_letter (
    topic, partition, "offset", dead_letter_time, reason, error_class, error_message, error_stacktrace,
    wait_expiration_uuid, idempotency_key, original_topic, original_partition, original_offset, original_timestamp,
    original_timestamp_ms, original_timestamp_type, consumer_group, instance, delivery, wait_partition, wait_offset, key,
    headers, body, state, state_at, state_by, job)
select
    'bench.dlq', i %% 6, i / 6, now() - interval '30 days' * i / %(rows)s,
    (array['failed', 'failed', 'failed', 'expired'])[1 + i %% 4], 'errors.Error' || i * 7919 %% 20,
    'order ' || i || ' was refused by the payment service', repeat('File "orders.py", line ' || i || ', in charge' || chr(10), 12),
    '00000000-0000-8000-9000-' || lpad(to_hex(i), 12, '0'), '00000000-0000-8000-9000-' || lpad(to_hex(i), 12, '0'),
    'bench.orders-' || i %% 10, i %% 6, i, now() - interval '30 days' * i / %(rows)s, 0, 'create',
    'group-' || i %% 5, 'host-' || i %% 16, 1, i %% 4, i, convert_to('customer-' || i %% 10000, 'UTF8'),
    '[["tenant", "YWNtZQ=="]]', convert_to(repeat(md5(i::text), 6), 'UTF8'),
    case when i %% 4 = 0 then 'open' else 'redriven' end, now(), 'bench', 'job-' || i %% 1000
from generate_series(1, %(rows)s::bigint) as i;

insert into dead_letter_mark (
    "offset", job, kind, state, wait_expiration_uuid, number, consumer_group, original_topic, original_partition,
    original_offset, target_topic, target_partition, target_offset, next_wait_id, marked_at, marked_by)
select
    i, 'job-' || i %% 1000, 'redrive', 'redriven', '00000000-0000-8000-9000-' || lpad(to_hex(i * 100), 12, '0'), 1,
    'group-' || i %% 5, 'bench.orders-' || i %% 10, i %% 6, i * 100, 'bench.redeliver', i %% 6, i,
    '00000000-0000-8000-a000-' || lpad(to_hex(i), 12, '0'), now(), 'bench'
from generate_series(1, %(rows)s::bigint / 100) as i;

insert into operation (
    job, kind, consumer_group, state, requested_at, requested_by, authenticated, via, reason, conditions, allowed,
    target, rate, ends, expected, changed_at, changed_by)
select
    'job-' || i, 'redrive', 'group-' || i %% 5, 'finished', now() - make_interval(mins => i), 'bench', false,
    'command', 'payment service is back', array['group=group-1'], array[]::text[], 'redelivery', 10, '{}',
    '{"redriven": 10}', now() - make_interval(mins => i), 'bench'
from generate_series(0, 999) as i;

-- One record of 10 MB.
insert into dead_letter (topic, partition, "offset", dead_letter_time, reason, error_class, consumer_group, body)
select 'bench.large', 0, 0, now(), 'failed', 'errors.Large', 'group-1',
    convert_to((select string_agg(md5(i::text), '') from generate_series(1, 312500) as i), 'UTF8');

analyze dead_letter, dead_letter_mark, operation;
