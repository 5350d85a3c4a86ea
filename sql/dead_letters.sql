-- What console, command, redrive and alerts read of dead letters; conditions are made of the fields in filter.py.

-- name: page
-- A page, the newest first; the last columns are the cursor's.
select
    topic || ':' || partition || ':' || "offset" as place,
    dead_letter_time as at,
    state,
    coalesce(reason, 'foreign') as reason,
    error_class as error,
    left(error_message, 200) as message,
    case when finished_late then 'yes' else 'no' end as finished_late,
    consumer_group as "group",
    original_topic || ':' || original_partition || ':' || original_offset as record,
    wait_registry_key(substring(key from 1 for 1024)) || case when octet_length(key) > 1024 then '…' else '' end as key,
    octet_length(body) as bytes,
    delivery,
    wait_expiration_uuid as wait_id,
    topic,
    partition,
    "offset"
from dead_letter
where {where}
order by dead_letter_time desc, topic desc, partition desc, "offset" desc
limit %s;

-- name: counts
-- How many there are of each combination, the most frequent first.
select {columns}, count(*) as dead_letters, min(dead_letter_time) as first, max(dead_letter_time) as last
from dead_letter
where {where}
group by {numbers}
order by dead_letters desc, {numbers}
limit %s;

-- name: rows
-- Dead letters with everything that they have.
select
    *,
    headers::text as headers_json,
    (select operation.reason from operation where operation.job = dead_letter.job) as job_reason
from dead_letter
where {where}
order by dead_letter_time desc, topic, partition, "offset";

-- name: groups_and_topics
select distinct consumer_group, original_topic from dead_letter where {where};

-- name: group_of_job
-- Its consumer group, and the dead letter topics of its selection. Those that aren't deleted have their own names.
select
    consumer_group,
    array(
        select coalesce(read.topic, bound.topic)
        from jsonb_object_keys(ends) as bound (topic)
        left join sink_progress as read
            on read.partition = 0 and read.topic || '@' || translate(read.topic_id, '+/', '-_') = bound.topic
    )
from operation
where job = %(job)s;

-- name: last_redrive
select "offset", job, marked_by, marked_at
from dead_letter_mark
where wait_expiration_uuid = %(wait_id)s and kind = 'redrive'
order by "offset" desc
limit 1;

-- name: positions
-- How far the tables have read a topic.
select partition, next_offset from sink_progress where topic = %(topic)s;

-- name: registered
-- The redriven records of a job that are registered, by the offsets of their marks; also if a later delivery is. Each is
-- looked up by itself, which the limit sees to (docs/decisions/0019).
select mark."offset"
from dead_letter_mark as mark
cross join lateral (
    select 1 from wait where wait.wait_expiration_uuid = mark.next_wait_id
    union all
    select 1
    from wait
    where wait.original_offset = mark.original_offset and wait.original_partition = mark.original_partition
        and wait.original_topic = mark.original_topic and wait.consumer_group = mark.consumer_group
        and wait.original_timestamp_ms is not distinct from mark.original_timestamp_ms
        and wait.delivery > mark.delivery
    limit 1
) as again
where mark.job = %(job)s and mark.kind = 'redrive' and mark."offset" > %(after)s and mark."offset" <= %(until)s;

-- name: dead_again
-- The redriven records of a job that are dead letters again, otherwise as `registered`.
select mark."offset"
from dead_letter_mark as mark
cross join lateral (
    select 1 from dead_letter where dead_letter.wait_expiration_uuid = mark.next_wait_id
    union all
    select 1
    from dead_letter
    where dead_letter.original_offset = mark.original_offset
        and dead_letter.original_partition = mark.original_partition
        and dead_letter.original_topic = mark.original_topic and dead_letter.consumer_group = mark.consumer_group
        and dead_letter.original_timestamp_ms is not distinct from mark.original_timestamp_ms
        and dead_letter.delivery > mark.delivery
    limit 1
) as again
where mark.job = %(job)s and mark.kind = 'redrive' and mark."offset" > %(after)s and mark."offset" <= %(until)s;

-- name: sent
select "offset", target_topic, target_partition, target_offset
from dead_letter_mark
where job = %(job)s and kind = 'redrive' and "offset" > %(after)s and "offset" <= %(until)s;

-- name: targets
select distinct target_topic, target_partition
from dead_letter_mark
where job = %(job)s and kind = 'redrive' and "offset" > %(after)s;

-- name: inputs
select distinct original_topic from dead_letter_mark where job = %(job)s and kind = 'redrive';

-- name: comebacks
-- The numbers of a job's consumed records, in the order of sending, that are dead letters again.
with sent as (
    select row_number() over (order by mark."offset") as nth, mark.*
    from dead_letter_mark as mark
    inner join unnest(%(topics)s::text[], %(partitions)s::int[], %(committed)s::bigint[]) as place (topic, partition, ends)
        on place.topic = mark.target_topic and place.partition = mark.target_partition and mark.target_offset < place.ends
    where mark.job = %(job)s and mark.kind = 'redrive' and mark."offset" > %(after)s
)
select sent.nth
from sent
cross join lateral (
    select 1 from dead_letter where dead_letter.wait_expiration_uuid = sent.next_wait_id
    union all
    select 1
    from dead_letter
    where dead_letter.original_offset = sent.original_offset
        and dead_letter.original_partition = sent.original_partition
        and dead_letter.original_topic = sent.original_topic and dead_letter.consumer_group = sent.consumer_group
        and dead_letter.original_timestamp_ms is not distinct from sent.original_timestamp_ms
        and dead_letter.delivery > sent.delivery
    limit 1
) as again
order by sent.nth;
