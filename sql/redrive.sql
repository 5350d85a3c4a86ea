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
-- What was asked for, with the names that the event has, and how far the job has come.
select
    job, kind, consumer_group as "group", requested_by as by, authenticated, via, reason, conditions, ends, target, rate,
    record_limit as "limit", canary, approval, allowed, expected, replacement,
    state, cursor, counts, counted_from, approved_by,
    (
        select count(*)
        from dead_letter_mark as mark
        where mark.job = operation.job and mark.kind = 'redrive' and mark."offset" > operation.counted_from
    ) as sent
from operation
where job = %(job)s;

-- name: groups
-- Three at most of the consumer groups of a selection.
select distinct consumer_group from dead_letter where {where} limit 3;

-- name: ends
-- The offsets behind the last dead letters of a selection, by partition.
select topic, partition, max("offset") + 1 from dead_letter where {where} group by topic, partition;

-- name: candidates
-- The dead letters of a selection with what the marks say of them and their deliveries, in the order of their records.
-- They are sorted without their contents, which are compared only where a delivery has several.
select
    letter.topic, letter.partition, letter."offset", letter.record_topic, letter.record_partition, letter.record_offset,
    letter.original_topic is not null and letter.original_partition is not null and letter.original_offset is not null,
    letter.reason, letter.wait_id, letter.consumer_group, letter.finished_late, letter.failed,
    exists (select from wait where wait.wait_expiration_uuid = letter.wait_id),
    coalesce(other.conflicting, false), letter.most_bytes, letter.delivery, letter.record_time_ms,
    coalesce(last.state, 'open'), last.job,
    (
        select count(*)
        from dead_letter_mark as mark
        where mark.wait_expiration_uuid = letter.wait_id and mark.kind = 'redrive'
    ),
    (
        select count(*)
        from dead_letter_mark as mark
        where mark.original_offset = letter.original_offset and mark.original_partition = letter.original_partition
            and mark.original_topic = letter.original_topic and mark.consumer_group = letter.consumer_group
            and mark.original_timestamp_ms is not distinct from letter.record_time_ms and mark.kind = 'redrive'
    ),
    other.twins
from (
    select
        dead_letter.topic, dead_letter.partition, dead_letter."offset", dead_letter.original_topic,
        dead_letter.original_partition, dead_letter.original_offset,
        coalesce(dead_letter.original_topic, '') as record_topic,
        coalesce(dead_letter.original_partition, -1) as record_partition,
        coalesce(dead_letter.original_offset, -1) as record_offset,
        dead_letter.reason, dead_letter.wait_expiration_uuid as wait_id, dead_letter.consumer_group,
        dead_letter.finished_late, dead_letter.finished_outcome is not distinct from 'dead_lettered' as failed,
        coalesce(octet_length(dead_letter.key), 0) + coalesce(octet_length(dead_letter.body), 0)
        + coalesce(octet_length(dead_letter.headers::text), 0) as most_bytes,
        dead_letter.delivery, dead_letter.original_timestamp_ms as record_time_ms
    from unnest(%s::text[], %s::int[], %s::bigint[]) as bound (topic, partition, ends)
    inner join (select * from dead_letter where {where}) as dead_letter
        on dead_letter.topic = bound.topic and dead_letter.partition = bound.partition
            and dead_letter."offset" < bound.ends
    where {after}
    order by
        record_topic, record_partition, record_offset,
        dead_letter.topic, dead_letter.partition, dead_letter."offset"
) as letter
left join sink_progress as read on read.topic = letter.topic and read.partition = 0
left join lateral (
    select mark.state, mark.job
    from dead_letter_mark as mark
    where mark.wait_expiration_uuid = letter.wait_id
        and wait_registry_covers(mark.dead_letters, letter.topic, read.topic_id, letter.partition, letter."offset")
    order by mark."offset" desc
    limit 1
) as last on true
left join lateral (
    select
        jsonb_agg(jsonb_build_array(twin.topic, twin.partition, twin."offset", coalesce(last.state, 'open'))) as twins,
        bool_or(exists (
            select
            from dead_letter as own
            where own.topic = letter.topic and own.partition = letter.partition and own."offset" = letter."offset"
                and (own.key, own.body, own.headers) is distinct from (twin.key, twin.body, twin.headers)
        )) as conflicting
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
    where twin.wait_expiration_uuid = letter.wait_id
        and (twin.topic, twin.partition, twin."offset") <> (letter.topic, letter.partition, letter."offset")
) as other on true
order by
    letter.record_topic, letter.record_partition, letter.record_offset,
    letter.topic, letter.partition, letter."offset";

-- name: contents
-- What is sent of dead letters, and the columns of its lineage in their order.
select
    topic, partition, "offset", key, body, coalesce(headers, '[]')::text, idempotency_key, original_topic,
    original_partition, original_offset, original_timestamp_ms, original_timestamp_type, wait_expiration_uuid,
    wait_partition, wait_offset, consumer_group, instance, delivery
from unnest(%s::text[], %s::int[], %s::bigint[]) as wanted (topic, partition, "offset")
inner join dead_letter using (topic, partition, "offset");

-- name: reached
-- How far the tables have read a topic, and which topic of this name that was.
select partition, next_offset, topic_id from sink_progress where topic = %(topic)s;

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

-- name: jobs
-- The newest jobs, or one.
select
    job, concat(kind, case when replacement is not null then ', edited' end) as kind, consumer_group as "group", state,
    requested_at, requested_by as by, reason,
    array_to_string(conditions, ' ') as conditions, rate,
    (
        select string_agg(category || ': ' || dead_letters, ', ' order by category)
        from jsonb_each_text(counts) as counted (category, dead_letters)
    ) as dead_letters,
    changed_at, changed_by, changed_reason, approved_by
from operation
where %(job)s::text is null or job = %(job)s
order by requested_at desc, job
limit %(rows)s;

-- name: audit
-- What operators did, the newest first.
select * from (
    select
        requested_at as at, requested_by as by,
        concat(kind, case when replacement is not null then ', edited' end) as what, job, consumer_group as "group",
        null as record, null as sent_to, authenticated, reason, array_to_string(conditions, ' ') as conditions,
        null as wait_id
    from operation
    where %(place)s::text is null
    union all
    select
        mark.marked_at, mark.marked_by, concat(mark.kind, case when mark.edited then ', edited' end), mark.job,
        mark.consumer_group,
        mark.original_topic || ':' || mark.original_partition || ':' || mark.original_offset,
        mark.target_topic || ':' || mark.target_partition || ':' || mark.target_offset,
        null, null, null, mark.wait_expiration_uuid
    from dead_letter_mark as mark
    where %(deliveries)s and (
        %(place)s::text is null
        or mark.wait_expiration_uuid in (
            select dead_letter.wait_expiration_uuid
            from dead_letter
            where dead_letter.topic = %(topic)s and dead_letter.partition = %(partition)s
                and dead_letter."offset" = %(offset)s
        )
    )
    union all
    select
        event.done_at, event.done_by, event.event, event.job, coalesce(event.consumer_group, operation.consumer_group),
        dead_letter_topic || ':' || dead_letter_partition || ':' || dead_letter_offset, null,
        event.authenticated, detail, null, null
    from operator_event as event
    left join operation using (job)
    where %(place)s::text is null
        or (dead_letter_topic in (%(topic)s, %(topic_of_then)s)
            and dead_letter_partition = %(partition)s and dead_letter_offset = %(offset)s)
) as done
where at >= %(since)s and (%(by)s::text is null or by = %(by)s) and (%(job)s::text is null or job = %(job)s)
order by at desc, job, record
limit %(rows)s;

-- name: history
-- Who asked for a job and who changed it.
select requested_at as at, requested_by as by, authenticated, 'asked for' as what, reason
from operation
where job = %(job)s
union all
select done_at, done_by, authenticated, event, detail from operator_event where job = %(job)s
order by at;

-- name: done_before
-- Which other jobs acted last on the dead letters of a selection.
select job, state_by as by, state, max(state_at) as at, count(*) as dead_letters
from dead_letter
where {where} and job <> %s
group by job, state_by, state
order by at desc, job
limit 20;
