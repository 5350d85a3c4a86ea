-- Rows in which each text is a canary: markup that would run, with the name of its field. The test fills them in.
insert into dead_letter (
    topic, partition, "offset", dead_letter_time, reason, error_class, error_message, error_stacktrace,
    wait_expiration_uuid, idempotency_key, original_topic, original_partition, original_offset, source_topic,
    source_partition, source_offset, consumer_group, instance, delivery, key, headers, body, state, state_by, state_at, job,
    finished_late, finished_outcome, finished_time
)
values (
    '__proto__.constructor-..dlq', 0, 0, now(), 'failed', %(error_class)s, %(error_message)s, %(stack_trace)s,
    %(wait_id)s, %(wait_id)s, %(topic)s, 0, 0, %(source_topic)s, 0, 0, %(group)s, %(instance)s, 1,
    convert_to(%(key)s, 'UTF8'), %(headers)s, convert_to(%(value)s, 'UTF8'), 'redriven', %(state_by)s, now(), 'hostile',
    true, %(outcome)s, now()
);

insert into wait (
    wait_expiration_uuid, idempotency_key, original_topic, original_partition, original_offset, original_key,
    original_headers, wait_expiration_time, body, consumer_group, instance, delivery, dead_letter_topic, expiry_policy,
    max_deliveries, wait_topic, wait_partition, wait_offset, created_at
)
values (
    %(waiting_id)s, %(wait_id)s, %(topic)s, 0, 1, convert_to(%(waiting_key)s, 'UTF8'), '[]', now() - interval '1 hour',
    convert_to(%(value)s, 'UTF8'), %(waiting_group)s, %(waiting_instance)s, 1, %(topic)s, 'dlq', 1, %(wait_topic)s, 0, 1,
    now() - interval '2 hours'
);

insert into operation (
    job, kind, consumer_group, state, requested_at, requested_by, authenticated, via, reason, conditions, allowed, target,
    rate, ends, expected, counts, changed_at, changed_by, changed_reason
)
values (
    'hostile', 'redrive', %(job_group)s, 'paused', now(), %(job_by)s, false, 'command', %(job_reason)s,
    array[%(job_condition)s], '{}', 'redelivery', 1, '{}', '{}', '{}', now(), %(job_changed_by)s, %(job_changed_reason)s
);

insert into dead_letter_mark (
    "offset", job, kind, state, wait_expiration_uuid, number, consumer_group, original_topic, original_partition,
    original_offset, target_topic, target_partition, target_offset, next_wait_id, marked_at, marked_by
)
values (
    900, 'hostile', 'redrive', 'redriven', %(wait_id)s, 1, %(group)s, %(topic)s, 0, 0, %(topic)s, 0, 0, %(waiting_id)s,
    now(), %(mark_by)s
);

insert into quarantine (topic, partition, "offset", record_time, error, key, headers)
values (%(wait_topic)s, 0, 0, now(), %(quarantine_error)s, convert_to(%(quarantine_key)s, 'UTF8'), '[]');

insert into sweep (wait_topic, started_at, duration_s, due, counts, skipped, result, instance)
values (
    %(wait_topic)s, now(), 0.2, 1, '{}', jsonb_build_array(jsonb_build_object('reason', %(sweep_reason)s::text)), 'skipped',
    %(sweeper)s
);
