-- What the sweeper asks Postgres. Only Postgres' clock decides what is due.

-- name: try_lock
select pg_try_advisory_lock(hashtextextended('waitreg.sweep ' || current_schema() || ' ' || %(topic)s, 0));

-- name: unlock
select pg_advisory_unlock(hashtextextended('waitreg.sweep ' || current_schema() || ' ' || %(topic)s, 0));

-- name: due_partitions
-- One probe of the index wait_due per partition: the limit keeps the planner from turning this into a join.
select numbers.partition, first.wait_expiration_time
from generate_series(0, %(partitions)s::int - 1) as numbers (partition)
cross join lateral (
    select wait_expiration_time
    from wait
    where wait_topic = %(topic)s
        and wait_partition = numbers.partition
        and wait_expiration_time < now() - make_interval(secs => %(skew_s)s)
    order by wait_expiration_time
    limit 1
) as first
order by numbers.partition;

-- name: due_count
select count(*)
from wait
where wait_topic = %(topic)s
    and wait_partition = any(%(partitions)s)
    and wait_expiration_time < now() - make_interval(secs => %(skew_s)s);

-- name: recorded_topic
-- Which topic the sink recorded, how many partitions it had, and how old the oldest position is, s.
select topic_id, count(*), extract(epoch from clock_timestamp() - min(position_time))::float8
from sink_progress
where topic = %(topic)s
group by topic_id;

-- name: progress
select topic_id, next_offset, position_time
from sink_progress
where topic = %(topic)s and partition = %(partition)s;

-- name: due_keys
-- Sizes without reading the bodies: octet_length of a toasted bytea is known from its pointer.
select
    wait_expiration_uuid,
    wait_offset,
    coalesce(octet_length(body), 0) + coalesce(octet_length(original_key), 0)
    + coalesce(octet_length(original_headers::text), 0)
from wait
where wait_topic = %(topic)s
    and wait_partition = %(partition)s
    and wait_expiration_time < now() - make_interval(secs => %(skew_s)s)
order by wait_expiration_time;

-- name: due_rows
select
    wait_expiration_uuid,
    original_topic,
    original_partition,
    original_offset,
    original_key,
    original_timestamp_ms,
    original_timestamp_type,
    original_headers::text as original_headers,
    wait_expiration_time,
    body,
    consumer_group,
    instance,
    delivery,
    dead_letter_topic,
    expiry_policy,
    max_deliveries,
    redeliver_to,
    idempotency_key,
    wait_partition,
    wait_offset,
    source_topic,
    source_partition,
    source_offset
from wait
where wait_expiration_uuid = any(%(ids)b)
order by wait_expiration_time, wait_expiration_uuid;

-- name: clock
select clock_timestamp();

-- name: record_sweep
insert into sweep (wait_topic, started_at, duration_s, due, counts, skipped, result, instance)
values (
    %(wait_topic)s, %(started_at)s, %(duration_s)s, %(due)s, %(counts)s, %(skipped)s, %(result)s, %(instance)s
);

-- name: purge_dead_letter
delete from dead_letter where ctid = any(array(
    select ctid from dead_letter where created_at < now() - make_interval(days => %(days)s)
    order by created_at limit %(limit)s
));

-- name: purge_quarantine
delete from quarantine where ctid = any(array(
    select ctid from quarantine where created_at < now() - make_interval(days => %(days)s)
    order by created_at limit %(limit)s
));

-- name: purge_late_outcome
delete from late_outcome where ctid = any(array(
    select ctid from late_outcome where created_at < now() - make_interval(days => %(days)s)
    order by created_at limit %(limit)s
));

-- name: purge_sweep
delete from sweep where ctid = any(array(
    select ctid from sweep where started_at < now() - make_interval(days => %(days)s)
    order by started_at limit %(limit)s
));

-- name: purge_dead_letter_mark
-- Not while a dead letter of the delivery is left: its mark says that it was redriven.
delete from dead_letter_mark where ctid = any(array(
    select old.ctid
    from dead_letter_mark as old
    where old.marked_at < now() - make_interval(days => %(days)s)
        and not exists (
            select from dead_letter as kept where kept.wait_expiration_uuid = old.wait_expiration_uuid
        )
    order by old.marked_at limit %(limit)s
));

-- name: purge_operation
delete from operation where ctid = any(array(
    select old.ctid
    from operation as old
    where old.changed_at < now() - make_interval(days => %(days)s)
        and not exists (select from dead_letter_mark as mark where mark.job = old.job)
    order by old.changed_at limit %(limit)s
));

-- name: purge_operator_event
delete from operator_event where ctid = any(array(
    select ctid from operator_event where done_at < now() - make_interval(days => %(days)s)
    order by done_at limit %(limit)s
));
