-- A small incident, every row of it known by name: what each query must answer is in
-- answers.txt. Times are relative to now.
insert into wait (
    wait_expiration_uuid, original_topic, original_partition, original_offset, original_key, original_headers,
    wait_expiration_time, body, consumer_group, instance, delivery, dead_letter_topic, expiry_policy, max_deliveries,
    wait_topic, wait_partition, wait_offset, created_at
)
values
(
    'w-overdue', 'orders', 0, 100, 'k-1', '[]', now() - interval '2 min', 'body', 'billing', 'host-1-a', 1,
    'orders.dlq', 'dlq', 1, 'wait', 0, 7, now() - interval '30 min'
),
(
    'w-binary', 'orders', 0, 101, '\x00ff', '[]', now() + interval '5 min', 'body', 'billing', 'host-1-a', 1,
    'orders.dlq', 'dlq', 1, 'wait', 0, 8, now() - interval '20 min'
),
(
    'w-again', 'orders', 1, 50, 'k-1', '[]', now() + interval '1 hour', 'body', 'billing', 'host-2-b', 2,
    'orders.dlq', 'redeliver', 3, 'wait', 1, 4, now() - interval '10 s'
),
(
    'w-null', 'refunds', 0, 9, null, '[]', now() + interval '9 min', null, 'shipping', 'host-3-c', 1,
    'refunds.dlq', 'dlq', 1, 'wait', 2, 2, now() - interval '5 min'
);

insert into dead_letter (
    topic, partition, "offset", dead_letter_time, reason, error_class, error_message, wait_expiration_uuid,
    original_topic, original_partition, original_offset, consumer_group, instance, delivery, key, finished_late,
    finished_outcome, finished_time, created_at
)
values
-- At the very moment of d-newer, and before it on disk: what is said of the one must not come from the others.
(
    'dlq', 2, 1, now() - interval '59 min', 'blocked', 'Held', 'of another group', 'd-group', 'orders', 0, 91,
    'shipping', 'host-3-c', 1, 'k-1', false, null, null, now()
),
(
    'dlq', 2, 0, now() - interval '59 min', 'blocked', 'Blocked', 'of another topic', 'd-blocked', 'refunds', 0, 8,
    'billing', 'host-2-b', 1, 'k-1', false, null, null, now()
),
(
    'dlq', 0, 0, now() - interval '3 days', 'failed', 'ValueError', 'long ago', 'd-long-ago', 'orders', 0, 10,
    'billing', 'host-1-a', 1, 'k-1', false, null, null, now() - interval '3 days'
),
(
    'dlq', 0, 1, now() - interval '2 hours', 'failed', 'ValueError', 'older', 'd-older', 'orders', 0, 90,
    'billing', 'host-1-a', 1, 'k-1', false, null, null, now()
),
(
    'dlq', 0, 2, now() - interval '59 min', 'failed', 'ValueError', 'newer: 100% "é"', 'd-newer', 'orders', 0, 91,
    'billing', 'host-1-a', 1, 'k-1', false, null, null, now()
),
(
    'dlq', 0, 3, now() - interval '50 min', 'expired', 'WaitExpired', 'no outcome', 'd-late', 'orders', 0, 92,
    'billing', 'host-0-z', 1, 'k-2', true, 'done', now() - interval '49 min', now()
),
(
    'dlq', 0, 4, now() - interval '40 min', 'expired', 'WaitExpired', 'no outcome either', 'd-lost', 'orders', 2, 77,
    'billing', 'host-1-a', 1, 'k-3', false, null, null, now()
),
(
    'dlq', 0, 5, now() - interval '10 min', null, null, null, null, null, null, null, null, null, null, 'x', false,
    null, null, now()
);

-- One record waits in its second delivery, another was dead-lettered in its third; all others are first deliveries.
update wait set idempotency_key = wait_expiration_uuid;
update wait
set idempotency_key = 'w-first', source_topic = 'orders.billing.redeliver', source_partition = 0, source_offset = 3
where wait_expiration_uuid = 'w-again';
update dead_letter set idempotency_key = wait_expiration_uuid;
update dead_letter
set
    idempotency_key = 'd-first', delivery = 3, source_topic = 'orders.billing.retry.1m', source_partition = 2,
    source_offset = 4
where wait_expiration_uuid = 'd-newer';

insert into late_outcome (wait_expiration_uuid, outcome, wait_topic, wait_partition, wait_offset, outcome_time)
values ('d-late', 'done', 'wait', 0, 6, now() - interval '49 min');

-- Headers of the record itself: ORIGINAL_TOPIC orders, ORIGINAL_PARTITION 3, ORIGINAL_OFFSET 33, ORIGINAL_KEY k-9.
insert into quarantine (topic, partition, "offset", record_time, error, key, headers)
values
(
    'wait', 3, 1, now() - interval '6 min', 'header WAIT_EXPIRATION_TIME: missing', '00000000-0000-8000-8000-000000000001',
    '[["ORIGINAL_TOPIC", "b3JkZXJz"], ["ORIGINAL_PARTITION", "Mw=="], ["ORIGINAL_OFFSET", "MzM="],
      ["ORIGINAL_KEY", "ay05"]]'
),
(
    'wait', 3, 2, now() - interval '4 min', 'header WAIT_EXPIRATION_TIME: missing', '00000000-0000-8000-8000-000000000002',
    '[]'
),
('wait', 3, 3, now() - interval '5 min', 'the key is no wait id', '\xff', '[]');

insert into dead_letter_mark (
    "offset", job, kind, state, wait_expiration_uuid, number, consumer_group, original_topic, original_partition,
    original_offset, target_topic, target_partition, target_offset, next_wait_id, marked_at, marked_by, delivery
)
values (
    4, 'job-1', 'redrive', 'redriven', 'd-newer', 1, 'billing', 'orders', 0, 91, 'orders.billing.redeliver', 2, 8,
    'd-newest', now() - interval '50 min', 'olga', 4
);

insert into sweep (
    wait_topic, started_at, duration_s, due, counts, skipped, result, instance
)
values
('wait', now() - interval '40 min', 1.5, 2, '{"exported": 1, "superseded": 1}', '[]', 'done', 'sweeper-1'),
('wait', now() - interval '39 min', 0.1, 0, '{}', '[]', 'done', 'sweeper-1'),
(
    'wait', now() - interval '1 min', 0.2, 1, '{}',
    '[{"partition": 0, "skip": "position_too_old", "reason": "the position is too old"},
      {"partition": 1, "skip": "fenced", "reason": "another sweeper took over"}]', 'partial', 'sweeper-1'
),
('wait', now() - interval '50 s', 0.1, 0, '{}', '[{"reason": "another sweep"}]', 'skipped', 'sweeper-2'),
('wait', now() - interval '20 s', 0.1, 0, '{}', '[{"reason": "another sweep"}]', 'skipped', 'sweeper-2');

insert into sink_progress (topic, topic_id, partition, next_offset, position_time, seen_at)
values
('wait', 'abc', 0, 10, now() - interval '5 min', now()),
('wait', 'abc', 1, 5, now(), now());

analyze wait, dead_letter, late_outcome, quarantine, sweep, sink_progress;
