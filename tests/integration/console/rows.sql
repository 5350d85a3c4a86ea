-- An incident as the console shows it. 45 minutes ago the payment provider began to time out; operators redrove a first
-- few dead letters 15 minutes ago. One processor died, and its records expired 20 minutes ago. Times are relative.
insert into dead_letter (
    topic, partition, "offset", dead_letter_time, reason, error_class, error_message, error_stacktrace,
    wait_expiration_uuid, idempotency_key, original_topic, original_partition, original_offset, original_timestamp,
    consumer_group, instance, delivery, key, headers, body
)
select
    'orders.dlq',
    number % 2,
    number,
    -- More and more of them, and then fewer.
    now() - make_interval(secs => 2700 - 1500 * sqrt(number / 120.0) + number % 97),
    'failed',
    case when number % 9 = 0 then 'RefusedByProvider' else 'TimeoutError' end,
    case
        when number % 9 = 0 then 'the provider refused with 422: card ' || number || ' is unknown'
        else 'no answer from payments.example within 30 s'
    end,
    E'Traceback (most recent call last):\n  File "orders.py", line 27, in handle\n'
    || E'    async with self.http.post("/", data=record.value) as answer:\nTimeoutError: no answer within 30 s',
    uuid.wait_id,
    uuid.wait_id,
    'orders',
    number % 3,
    41000 + number,
    now() - make_interval(secs => 2800),
    'payments',
    'payments-' || 1 + number % 3,
    1,
    convert_to('customer-' || 100 + number % 40, 'UTF8'),
    '[["trace", "NGJmOTJmMzU3N2IzNGRhNg=="], ["source", "c2hvcA=="], ["empty", null]]',
    convert_to(
        '{"order": ' || 41000 + number || ', "amount": "' || 5 + number % 90 || '.90", "currency": "EUR"}', 'UTF8'
    )
from generate_series(1, 120) as number
cross join lateral (select '0192f3a1-7c00-7000-8000-' || lpad(number::text, 12, '0') as wait_id) as uuid;

insert into dead_letter (
    topic, partition, "offset", dead_letter_time, reason, error_class, error_message, wait_expiration_uuid,
    idempotency_key, original_topic, original_partition, original_offset, consumer_group, instance, delivery, key, body,
    finished_late, finished_outcome, finished_time, headers
)
select
    'orders.dlq', 0, 1000 + number, now() - interval '20 min' + make_interval(secs => number % 50), 'expired',
    'WaitExpired', 'no outcome before the deadline', uuid.wait_id, uuid.wait_id, 'orders', number % 3, 42000 + number,
    'payments', 'payments-4', 1, convert_to('customer-' || number, 'UTF8'), convert_to('{"order": ' || number || '}', 'UTF8'),
    number % 7 = 0, case when number % 7 = 0 then 'done' end, case when number % 7 = 0 then now() - interval '18 min' end,
    '[]'
from generate_series(1, 24) as number
cross join lateral (select '0192f3a1-7c00-7000-8000-1' || lpad(number::text, 11, '0') as wait_id) as uuid;

-- Every hour some others, of another group.
insert into dead_letter (
    topic, partition, "offset", dead_letter_time, reason, error_class, error_message, wait_expiration_uuid,
    idempotency_key, original_topic, original_partition, original_offset, consumer_group, instance, delivery, key, body,
    headers
)
select
    'invoices.dlq', 0, number, now() - make_interval(mins => 20 + 65 * number), 'malformed', 'ValueError',
    'the value is no JSON: Expecting value: line 1 column 1 (char 0)', uuid.wait_id, uuid.wait_id, 'invoices', 0, number,
    'accounting', 'accounting-1', 1, null, '\x00ff10', '[]'
from generate_series(1, 20) as number
cross join lateral (select '0192f3a1-7c00-7000-8000-2' || lpad(number::text, 11, '0') as wait_id) as uuid;

insert into wait (
    wait_expiration_uuid, idempotency_key, original_topic, original_partition, original_offset, original_key,
    original_headers, wait_expiration_time, body, consumer_group, instance, delivery, dead_letter_topic, expiry_policy,
    max_deliveries, wait_topic, wait_partition, wait_offset, created_at
)
select
    uuid.wait_id, uuid.wait_id, 'orders', number % 3, 43000 + number, convert_to('customer-' || number, 'UTF8'), '[]',
    now() + make_interval(secs => 600 - number * 30), '{"order": 1}', 'payments', 'payments-' || 1 + number % 3, 1,
    'orders.dlq', 'dlq', 1, 'wait', number % 4, number, now() - make_interval(secs => number * 30)
from generate_series(1, 24) as number
cross join lateral (select '0192f3a1-7c00-7000-8000-3' || lpad(number::text, 11, '0') as wait_id) as uuid;

-- The job of the first forty: most were done, some wait again, some are dead letters again.
insert into operation (
    job, kind, consumer_group, state, requested_at, requested_by, authenticated, via, reason, conditions, allowed, target,
    rate, ends, expected, counts, changed_at, changed_by
)
values
(
    '7c1f09ab23de', 'redrive', 'payments', 'finished', now() - interval '15 min', 'anna', true, 'command',
    'payment service is back', '{group=payments,error=TimeoutError,since=6h}', '{}', 'redelivery', 10, '{}',
    '{"redriven": 40}', '{"redriven": 40, "still_waiting": 2}', now() - interval '14 min', 'anna'
),
(
    '08d3e6f4a1b2', 'archive', 'accounting', 'paused', now() - interval '2 hours', 'ben', true, 'command',
    'test invoices', '{group=accounting,before=30d}', '{}', 'redelivery', 10, '{}', '{}', '{"archived": 12}',
    now() - interval '110 min', 'ben'
);

insert into dead_letter_mark (
    "offset", job, kind, state, wait_expiration_uuid, number, consumer_group, original_topic, original_partition,
    original_offset, target_topic, target_partition, target_offset, next_wait_id, marked_at, marked_by
)
select
    number, '7c1f09ab23de', 'redrive', 'redriven', '0192f3a1-7c00-7000-8000-' || lpad(number::text, 12, '0'), 1, 'payments',
    'orders', number % 3, 41000 + number, 'orders.payments.redeliver', 0, number,
    case
        when number <= 10 then '0192f3a1-7c00-7000-8000-3' || lpad(number::text, 11, '0')
        else '0192f3a1-7c00-7000-8000-4' || lpad(number::text, 11, '0')
    end,
    now() - interval '14 min', 'anna'
from generate_series(1, 40) as number;
update dead_letter
set state = 'redriven', state_at = now() - interval '14 min', state_by = 'anna', job = '7c1f09ab23de'
where topic = 'orders.dlq' and "offset" between 1 and 40;

insert into sweep (wait_topic, started_at, duration_s, due, counts, skipped, result, instance)
select
    'wait', now() - make_interval(mins => number), 0.2, 3, '{"exported": 3}', '[]', 'done', 'sweeper-1'
from generate_series(1, 10) as number;

insert into sink_progress (topic, topic_id, partition, next_offset, position_time, seen_at)
select 'wait', 'abc', number, 500 + number, now() - interval '2 s', now() - interval '1 s' from generate_series(0, 3) as number;

insert into quarantine (topic, partition, "offset", record_time, error, key, headers)
values ('wait', 3, 1, now() - interval '6 min', 'header WAIT_EXPIRATION_TIME: missing', 'k', '[]');

analyze dead_letter, wait, operation, dead_letter_mark, sweep, sink_progress, quarantine;
