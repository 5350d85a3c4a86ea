-- What a sweeper and `waitreg connect` ask Postgres if Kafka Connect replaces the sink or the sweeper.

-- name: outbox_read
-- Whether Debezium's source reads this schema's outbox now: a row if so. Every role may ask this.
select 1
from pg_replication_slots
where slot_name = 'waitreg_' || current_schema() || '_expired' and database = current_database() and active;

-- name: outbox_filled
-- How long ago a source last put a row into the outbox, s; null when that is longer ago than silent_most_s.
select extract(epoch from clock_timestamp() - max(created_at))::float8
from expired_outbox
where wait_topic = %(topic)s and created_at > clock_timestamp() - make_interval(secs => %(silent_most_s)s);

-- name: due_places
-- Which IDs a sweep looks for in the log, and from where on.
select wait_expiration_uuid, wait_offset
from wait
where wait_topic = %(topic)s
    and wait_partition = %(partition)s
    and wait_expiration_time < now() - make_interval(secs => %(skew_s)s)
limit %(limit)s;

-- name: oldest_due
-- For how long the oldest registration has been due, s; 0 when none is. One probe of the index wait_due a partition.
-- With `unexported` only those count whose dead letter isn't in the table: others are passed over, a probe each.
with recursive found (partition) as (
    select min(wait_partition) from wait where wait_topic = %(topic)s
    union all
    select (select min(wait_partition) from wait where wait_topic = %(topic)s and wait_partition > found.partition)
    from found
    where found.partition is not null
)

select coalesce(
    extract(epoch from clock_timestamp() - min(first.wait_expiration_time) - make_interval(secs => %(skew_s)s)), 0
)::float8
from found
cross join lateral (
    select wait_expiration_time
    from wait
    where wait_topic = %(topic)s
        and wait_partition = found.partition
        and wait_expiration_time < now() - make_interval(secs => %(skew_s)s)
        and not (
            %(unexported)s::boolean
            and exists (
                select
                from dead_letter
                where dead_letter.wait_expiration_uuid = wait.wait_expiration_uuid
                    and dead_letter.reason = 'expired'
                    and dead_letter.wait_partition = wait.wait_partition
                    and dead_letter.wait_offset = wait.wait_offset
                offset 0
            )
        )
    order by wait_expiration_time
    limit 1
) as first;

-- name: position_age
-- How long ago a sink recorded its position, s; null when none has.
select extract(epoch from clock_timestamp() - max(seen_at))::float8
from sink_progress
where topic = %(topic)s;

-- name: sweep_age
-- How long ago the last sweep began, s; null when there was none.
select extract(epoch from clock_timestamp() - max(started_at))::float8
from sweep
where wait_topic = %(topic)s;

-- name: positions
select partition, next_offset
from sink_progress
where topic = %(topic)s;

-- name: stale_slots
-- Replication slots that still hold rows from before the last sweep.
select slot_name
from pg_replication_slots
where slot_name = any(%(slots)s)
    and database = current_database()
    and exists (
        select from sweep
        where wait_topic = %(topic)s
            and started_at > (select max(created_at) from expired_outbox where wait_topic = %(topic)s)
    )
order by slot_name;
