-- What `waitreg connect watch` asks Postgres where a source exports. Only Postgres' clock decides what is due.

-- name: oldest_due
-- For how long the oldest registration has been due, s; 0 when none is. One probe of the index wait_due a partition.
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
    order by wait_expiration_time
    limit 1
) as first;

-- name: oldest_unexported
-- The same among those whose dead letter isn't known. What is exported and not closed yet is passed over, a probe each.
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
        and not exists (
            select
            from dead_letter as letter
            where letter.wait_expiration_uuid = wait.wait_expiration_uuid
                and letter.reason = 'expired'
                and letter.wait_partition = wait.wait_partition
                and letter.wait_offset = wait.wait_offset
            offset 0
        )
    order by wait_expiration_time
    limit 1
) as first;
