-- What a redrive reads in Postgres; it writes nothing there. Tables are found by search_path.

-- name: position
select topic_id, next_offset, position_time from sink_progress where topic = %(topic)s and partition = 0;

-- name: job
select * from operation where job = %(job)s;

-- name: candidates
-- The dead letters of a selection with what the marks say of their deliveries, in the order of their records.
select
    letter.topic, letter.partition, letter."offset", letter.reason, letter.wait_expiration_uuid, letter.consumer_group,
    letter.original_topic, letter.original_partition, letter.original_offset, letter.finished_late,
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
        select count(*)
        from dead_letter_mark as mark
        where mark.wait_expiration_uuid = letter.wait_expiration_uuid and mark.kind = 'redrive'
    ) as number,
    (
        select count(*)
        from dead_letter_mark as mark
        where mark.original_offset = letter.original_offset and mark.original_partition = letter.original_partition
            and mark.original_topic = letter.original_topic and mark.consumer_group = letter.consumer_group
            and mark.kind = 'redrive'
    ) as of_record
from unnest(%s::text[], %s::int[], %s::bigint[]) as bound (topic, partition, ends)
inner join (select * from dead_letter where {where}) as letter
    on letter.topic = bound.topic and letter.partition = bound.partition and letter."offset" < bound.ends
left join lateral (
    select mark.state, mark.job
    from dead_letter_mark as mark
    where mark.wait_expiration_uuid = letter.wait_expiration_uuid
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
