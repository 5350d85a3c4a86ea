-- What a redrive reads in Postgres; it writes nothing there. Tables are found by search_path.

-- name: position
-- Of the operations topic, with the one that the sink began to read after it, if there is one.
select own.topic_id, own.next_offset, own.position_time, (
    select later.topic
    from sink_progress as later
    where later.operations_number > coalesce(own.operations_number, 0)
    order by later.operations_number desc
    limit 1
) as later
from sink_progress as own
where own.topic = %(topic)s and own.partition = 0;

-- name: topic_ids
select topic, topic_id from sink_progress where partition = 0;

-- name: job
select * from operation where job = %(job)s;

-- name: candidates
-- The dead letters of a selection with what the marks say of them and their deliveries, in the order of their records.
select
    letter.topic, letter.partition, letter."offset", letter.reason, letter.wait_expiration_uuid, letter.consumer_group,
    letter.original_topic, letter.original_partition, letter.original_offset, letter.original_timestamp_ms,
    letter.finished_late, letter.delivery,
    letter.finished_outcome is not distinct from 'dead_lettered' as failed,
    coalesce(octet_length(letter.key), 0) + coalesce(octet_length(letter.body), 0)
    + coalesce(octet_length(letter.headers::text), 0) as most_bytes,
    exists (
        select from wait where wait.wait_expiration_uuid = letter.wait_expiration_uuid
    ) as waiting,
    exists (
        select
        from dead_letter as other
        where other.wait_expiration_uuid = letter.wait_expiration_uuid
            and (other.topic, other.partition, other."offset") <> (letter.topic, letter.partition, letter."offset")
            and (other.key, other.body, other.headers) is distinct from (letter.key, letter.body, letter.headers)
    ) as conflicting,
    last.state as mark_state,
    last.job as mark_job,
    (
        select jsonb_agg(jsonb_build_array(twin.topic, twin.partition, twin."offset", coalesce(last.state, 'open')))
        from dead_letter as twin
        left join sink_progress as read on read.topic = twin.topic and read.partition = 0
        left join lateral (
            select mark.state
            from dead_letter_mark as mark
            where mark.wait_expiration_uuid = twin.wait_expiration_uuid
                and wait_registry_covers(mark.dead_letters, twin.topic, read.topic_id, twin.partition, twin."offset")
            order by mark."offset" desc
            limit 1
        ) as last on true
        where twin.wait_expiration_uuid = letter.wait_expiration_uuid
    ) as of_delivery,
    (
        select count(*)
        from dead_letter_mark as mark
        where mark.wait_expiration_uuid = letter.wait_expiration_uuid and mark.kind = 'redrive'
    ) as number,
    (
        select count(*)
        from dead_letter_mark as mark
        where mark.original_offset = letter.original_offset and mark.original_partition = letter.original_partition
            and mark.original_topic = letter.original_topic and mark.consumer_group = letter.consumer_group
            and mark.original_timestamp_ms is not distinct from letter.original_timestamp_ms
            and mark.kind = 'redrive'
    ) as of_record
from unnest(%s::text[], %s::int[], %s::bigint[]) as bound (topic, partition, ends)
inner join (select * from dead_letter where {where}) as letter
    on letter.topic = bound.topic and letter.partition = bound.partition and letter."offset" < bound.ends
left join sink_progress as read on read.topic = letter.topic and read.partition = 0
left join lateral (
    select mark.state, mark.job
    from dead_letter_mark as mark
    where mark.wait_expiration_uuid = letter.wait_expiration_uuid
        and wait_registry_covers(mark.dead_letters, letter.topic, read.topic_id, letter.partition, letter."offset")
    order by mark."offset" desc
    limit 1
) as last on true
where {after}
order by
    coalesce(letter.original_topic, ''), coalesce(letter.original_partition, -1), coalesce(letter.original_offset, -1),
    letter.topic, letter.partition, letter."offset";

-- name: contents
select letter.*, coalesce(letter.headers, '[]')::text as headers_json
from unnest(%s::text[], %s::int[], %s::bigint[]) as wanted (topic, partition, "offset")
inner join dead_letter as letter using (topic, partition, "offset");

-- name: redriven
select count(*) from dead_letter_mark where job = %(job)s and kind = 'redrive' and "offset" > %(after)s;

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
-- How far the tables have read a topic, and which topic of this name that was.
select partition, next_offset, topic_id from sink_progress where topic = %(topic)s;

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
    select 1 from dead_letter as letter where letter.wait_expiration_uuid = mark.next_wait_id
    union all
    select 1
    from dead_letter as letter
    where letter.original_offset = mark.original_offset and letter.original_partition = mark.original_partition
        and letter.original_topic = mark.original_topic and letter.consumer_group = mark.consumer_group
        and letter.original_timestamp_ms is not distinct from mark.original_timestamp_ms
        and letter.delivery > mark.delivery
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
    select 1 from dead_letter as letter where letter.wait_expiration_uuid = sent.next_wait_id
    union all
    select 1
    from dead_letter as letter
    where letter.original_offset = sent.original_offset and letter.original_partition = sent.original_partition
        and letter.original_topic = sent.original_topic and letter.consumer_group = sent.consumer_group
        and letter.original_timestamp_ms is not distinct from sent.original_timestamp_ms
        and letter.delivery > sent.delivery
    limit 1
) as again
order by sent.nth;

-- name: has_dead_letters
select exists (select from dead_letter where topic = %(topic)s);

-- name: perhaps_open
-- Those of a range of offsets that may be open: that are, and those with later marks.
select "offset", wait_expiration_uuid, state
from dead_letter
where topic = %(topic)s and partition = %(partition)s and "offset" >= %(first)s and "offset" < %(before)s
    and (state = 'open' or wait_expiration_uuid = any(%(marked)s::text[]))
order by "offset";

-- name: offsets_of_dead_letters
select "offset"
from dead_letter
where topic = %(topic)s and partition = %(partition)s and "offset" >= %(first)s and "offset" < %(before)s
order by "offset";
