-- What the sink does in Postgres. Tables are found by search_path.

-- name: try_lock
select pg_try_advisory_lock(hashtextextended('waitreg.sink ' || current_schema() || ' ' || %(topic)s, 0));

-- name: now
select clock_timestamp();

-- name: read_progress
select partition, topic_id, next_offset, position_time, read_until
from sink_progress
where topic = %(topic)s
order by partition;

-- name: has_waits
select exists (select from wait where wait_topic = %(topic)s);

-- name: insert_progress
insert into sink_progress (topic, partition, next_offset, position_time, read_until, topic_id, seen_at)
values (%s, %s, %s, %s, %s, %s, clock_timestamp())
on conflict (topic, partition) do nothing;

-- name: begin_operations
update sink_progress
set operations_number = (select coalesce(max(operations_number), 0) + 1 from sink_progress)
where topic = %(topic)s;

-- name: later_operations
-- The operations topic that the sink began to read after this one.
select later.topic
from sink_progress as own
inner join sink_progress as later on later.operations_number > coalesce(own.operations_number, 0)
where own.topic = %(topic)s
order by later.operations_number desc
limit 1;

-- name: forget_progress
delete from sink_progress where topic = %(topic)s;

-- name: rename_dead_letters
update dead_letter set topic = %(kept)s where topic = %(topic)s;

-- name: advance
update sink_progress as held
set
    next_offset = step.next_offset, position_time = step.position_time, read_until = step.read_until,
    seen_at = clock_timestamp()
from unnest(
    %(topics)s::text[], %(partitions)s::int[], %(expected)s::bigint[], %(next_offsets)s::bigint[],
    %(position_times)s::timestamptz[], %(read_until)s::bigint[]
) as step (topic, partition, expected, next_offset, position_time, read_until)
where held.topic = step.topic and held.partition = step.partition
    and held.next_offset = step.expected;

-- name: stage
create temp table if not exists staged_wait (like wait including defaults) on commit delete rows;
create temp table if not exists staged_dead_letter (like dead_letter including defaults) on commit delete rows;
create temp table if not exists staged_tombstone (
    wait_expiration_uuid text not null,
    wait_partition int not null,
    last_offset bigint not null,
    first_offset bigint not null,
    first_time timestamptz not null,
    first_outcome text,
    first_is_tombstone boolean not null,
    by_processor boolean not null,
    wait_expiration_time timestamptz
) on commit delete rows;

-- name: freeze_staged
-- No transaction may be open. The tables are empty and their toast tables come along: 6 ms.
vacuum (freeze) staged_wait, staged_dead_letter, staged_tombstone;

-- name: prefer_probes
-- To the end of the transaction a page costs what it does in memory. At the usual price Postgres reads a table of a few
-- pages whole at each look, and compiles a statement that has many of them (docs/decisions/0019).
set local random_page_cost = 0.1;

-- name: analyze_tombstones
analyze staged_tombstone;

-- name: settle
-- Deletes what tombstones settle, and keeps those of them that came too late: nothing was open, or it had expired.
-- Nearly all are of registrations that came in the same batch and never became rows. Each is looked up by itself, which
-- the limit sees to: a join reads the whole table instead, of a million rows in a second (docs/decisions/0019).
-- A tombstone without a wait counts only where the log was read before compaction could touch it.
with gone as (
    delete from wait
    where ctid = any(array(
        select held.place
        from staged_tombstone as staged
        cross join lateral (
            select ctid as place, wait_topic, wait_partition, wait_offset
            from wait
            where wait.wait_expiration_uuid = staged.wait_expiration_uuid
            limit 1
        ) as held
        where held.wait_topic = %(topic)s
            and held.wait_partition = staged.wait_partition
            and held.wait_offset < staged.last_offset
    ))
    returning wait.wait_expiration_uuid, wait.wait_partition, wait.wait_expiration_time
),
late as (
    insert into late_outcome (
        wait_expiration_uuid, outcome, wait_topic, wait_partition, wait_offset, outcome_time
    )
    select
        staged.wait_expiration_uuid, staged.first_outcome, %(topic)s, staged.wait_partition, staged.first_offset,
        staged.first_time
    from staged_tombstone as staged
    left join gone using (wait_expiration_uuid, wait_partition)
    left join unnest(%(partitions)s::int[], %(whole_from)s::bigint[]) as whole (wait_partition, first_offset)
        on whole.wait_partition = staged.wait_partition
    where
        case
            when not staged.first_is_tombstone
                then staged.by_processor and staged.first_time > staged.wait_expiration_time
            when gone.wait_expiration_uuid is null then staged.first_offset >= coalesce(whole.first_offset, 0)
            else staged.by_processor and staged.first_time > gone.wait_expiration_time
        end
    on conflict (wait_topic, wait_partition, wait_offset) do nothing
    returning 1
)
select (select count(*) from gone), (select count(*) from late);

-- name: insert_late
insert into late_outcome (wait_expiration_uuid, outcome, wait_topic, wait_partition, wait_offset, outcome_time)
values (%s, %s, %s, %s, %s, to_timestamp(%s / 1000.0))
on conflict (wait_topic, wait_partition, wait_offset) do nothing;

-- name: upsert_waits
insert into wait as held (
    wait_expiration_uuid, original_topic, original_partition, original_offset, original_key, original_timestamp,
    original_timestamp_ms, original_timestamp_type, original_headers, wait_expiration_time, body, consumer_group,
    instance, delivery, dead_letter_topic, expiry_policy, max_deliveries, redeliver_to, idempotency_key, wait_topic,
    wait_partition, wait_offset, source_topic, source_partition, source_offset, traceparent, tracestate
)
select
    wait_expiration_uuid, original_topic, original_partition, original_offset, original_key, original_timestamp,
    original_timestamp_ms, original_timestamp_type, original_headers, wait_expiration_time, body, consumer_group,
    instance, delivery, dead_letter_topic, expiry_policy, max_deliveries, redeliver_to, idempotency_key, wait_topic,
    wait_partition, wait_offset, source_topic, source_partition, source_offset, traceparent, tracestate
from staged_wait
on conflict (wait_expiration_uuid) do update set
    original_topic = excluded.original_topic,
    original_partition = excluded.original_partition,
    original_offset = excluded.original_offset,
    original_key = excluded.original_key,
    original_timestamp = excluded.original_timestamp,
    original_timestamp_ms = excluded.original_timestamp_ms,
    original_timestamp_type = excluded.original_timestamp_type,
    original_headers = excluded.original_headers,
    wait_expiration_time = excluded.wait_expiration_time,
    body = excluded.body,
    consumer_group = excluded.consumer_group,
    instance = excluded.instance,
    delivery = excluded.delivery,
    dead_letter_topic = excluded.dead_letter_topic,
    expiry_policy = excluded.expiry_policy,
    max_deliveries = excluded.max_deliveries,
    redeliver_to = excluded.redeliver_to,
    idempotency_key = excluded.idempotency_key,
    wait_topic = excluded.wait_topic,
    wait_partition = excluded.wait_partition,
    wait_offset = excluded.wait_offset,
    source_topic = excluded.source_topic,
    source_partition = excluded.source_partition,
    source_offset = excluded.source_offset,
    traceparent = excluded.traceparent,
    tracestate = excluded.tracestate,
    created_at = now()
where held.wait_topic <> excluded.wait_topic
    or held.wait_partition <> excluded.wait_partition
    or held.wait_offset < excluded.wait_offset;

-- name: quarantine
insert into quarantine (topic, partition, "offset", record_time, error, key, headers, body)
values (%s, %s, %s, to_timestamp(%s / 1000.0), %s, %s, %s::jsonb, %s)
on conflict (topic, partition, "offset") do nothing;

-- name: lock_marking
-- The transaction that marks holds this to its end: of two streams that bring the two halves of a late
-- completion at the same time, the second sees what the first wrote.
select pg_advisory_xact_lock(hashtextextended('waitreg.finished_late.' || current_schema(), 0));

-- name: mark_by_tombstones
-- A processor's outcome of an id that has an `expired` dead letter: those of this batch, and the late ones. It counts if
-- it stands behind the registration that expired: an earlier one was of another pass, before a rewind.
-- Hardly any id has such a dead letter, and each is looked up by itself, which `offset 0` and the limit see to. So is
-- what was found: the planner takes an array for short (docs/decisions/0019).
with found as (
    select expired.topic, expired.partition, expired."offset", finished.outcome, finished.outcome_time
    from staged_tombstone as staged
    cross join lateral (
        select topic, partition, "offset", wait_partition, wait_offset
        from dead_letter
        where dead_letter.wait_expiration_uuid = staged.wait_expiration_uuid
            and dead_letter.reason = 'expired' and dead_letter.finished_outcome is null
        offset 0
    ) as expired
    cross join lateral (
        select staged.first_outcome as outcome, staged.first_time as outcome_time
        where staged.by_processor
            and (
                expired.wait_offset is null
                or (staged.wait_partition = expired.wait_partition and staged.first_offset > expired.wait_offset)
            )
        union all
        select late.outcome, late.outcome_time
        from late_outcome as late
        where late.wait_expiration_uuid = staged.wait_expiration_uuid
            and late.outcome in ('done', 'retried', 'dead_lettered', 'discarded')
            and (
                expired.wait_offset is null
                or (late.wait_partition = expired.wait_partition and late.wait_offset > expired.wait_offset)
            )
        limit 1
    ) as finished
)

update dead_letter
set
    finished_late = finished.outcome <> 'dead_lettered', finished_outcome = finished.outcome,
    finished_time = finished.outcome_time
from unnest(
    array(select topic from found),
    array(select partition from found),
    array(select "offset" from found),
    array(select outcome from found),
    array(select outcome_time from found)
) as finished (topic, partition, "offset", outcome, outcome_time)
where dead_letter.topic = finished.topic and dead_letter.partition = finished.partition
    and dead_letter."offset" = finished."offset"
    and dead_letter.finished_outcome is null;

-- name: upsert_dead_letters
insert into dead_letter (
    topic, partition, "offset", dead_letter_time, reason, error_class, error_message, error_stacktrace,
    wait_expiration_uuid, idempotency_key, original_topic, original_partition, original_offset, original_timestamp,
    original_timestamp_ms, original_timestamp_type, consumer_group, instance, delivery, wait_partition, wait_offset,
    source_topic, source_partition, source_offset, key, headers, body
)
select
    topic, partition, "offset", dead_letter_time, reason, error_class, error_message, error_stacktrace,
    wait_expiration_uuid, idempotency_key, original_topic, original_partition, original_offset, original_timestamp,
    original_timestamp_ms, original_timestamp_type, consumer_group, instance, delivery, wait_partition, wait_offset,
    source_topic, source_partition, source_offset, key, headers, body
from staged_dead_letter
on conflict (topic, partition, "offset") do update set
    dead_letter_time = excluded.dead_letter_time,
    reason = excluded.reason,
    error_class = excluded.error_class,
    error_message = excluded.error_message,
    error_stacktrace = excluded.error_stacktrace,
    wait_expiration_uuid = excluded.wait_expiration_uuid,
    idempotency_key = excluded.idempotency_key,
    original_topic = excluded.original_topic,
    original_partition = excluded.original_partition,
    original_offset = excluded.original_offset,
    original_timestamp = excluded.original_timestamp,
    original_timestamp_ms = excluded.original_timestamp_ms,
    original_timestamp_type = excluded.original_timestamp_type,
    consumer_group = excluded.consumer_group,
    instance = excluded.instance,
    delivery = excluded.delivery,
    wait_partition = excluded.wait_partition,
    wait_offset = excluded.wait_offset,
    source_topic = excluded.source_topic,
    source_partition = excluded.source_partition,
    source_offset = excluded.source_offset,
    key = excluded.key,
    headers = excluded.headers,
    body = excluded.body,
    finished_late = false,
    finished_outcome = null,
    finished_time = null,
    created_at = now(),
    state = 'open',
    state_at = null,
    state_by = null,
    job = null;

-- name: begin_operation
insert into operation (
    job, kind, consumer_group, state, requested_at, requested_by, authenticated, via, reason, conditions, allowed,
    target, rate, record_limit, canary, approval, ends, expected, replacement, changed_at, changed_by
)
values (
    %(job)s, %(kind)s, %(group)s, case when %(approval)s then 'awaiting' else 'running' end, %(at)s, %(by)s,
    %(authenticated)s, %(via)s, %(reason)s, %(conditions)s, %(allowed)s, %(target)s, %(rate)s, %(limit)s, %(canary)s,
    %(approval)s, %(ends)s, %(expected)s, %(replacement)s, %(at)s, %(by)s
)
on conflict (job) do nothing;

-- name: advance_operation
update operation set cursor = %(cursor)s, counts = %(counts)s, changed_at = %(at)s
where job = %(job)s;

-- name: change_operation
update operation
set
    state = %(state)s, changed_at = %(at)s, changed_by = %(by)s, changed_reason = %(reason)s,
    counted_from = case when %(state)s = 'running' then %(offset)s else counted_from end
where job = %(job)s and state not in ('cancelled', 'finished') and (state <> 'awaiting' or %(state)s = 'cancelled');

-- name: approve_operation
update operation
set
    state = 'running', approved_by = %(by)s, changed_at = %(at)s, changed_by = %(by)s, changed_reason = %(reason)s
where job = %(job)s and state = 'awaiting' and requested_by <> %(by)s;

-- name: change_rate
update operation set rate = %(rate)s where job = %(job)s and state not in ('cancelled', 'finished');

-- name: insert_operator_event
insert into operator_event (
    "offset", event, job, consumer_group, done_at, done_by, authenticated, detail, dead_letter_topic,
    dead_letter_partition, dead_letter_offset
)
values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
on conflict ("offset") do nothing;

-- name: insert_mark
insert into dead_letter_mark (
    "offset", job, kind, state, wait_expiration_uuid, number, consumer_group, original_topic, original_partition,
    original_offset, original_timestamp_ms, target_topic, target_partition, target_offset, next_wait_id, delivery,
    edited, dead_letters, marked_at, marked_by
)
values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
on conflict ("offset") do nothing;

-- name: keep_earlier_marks
-- Those of an earlier operations topic come before all of the next one, which counts its offsets from 0: below 0, in
-- their order.
update dead_letter_mark as mark
set "offset" = mark."offset" - bounds.span
from (select max("offset") - least(min("offset"), 0) + 1 as span, max("offset") as last from dead_letter_mark) as bounds
where bounds.last >= 0;

-- name: keep_earlier_events
-- As `keep_earlier_marks`.
update operator_event as event
set "offset" = event."offset" - bounds.span
from (select max("offset") - least(min("offset"), 0) + 1 as span, max("offset") as last from operator_event) as bounds
where bounds.last >= 0;

-- name: show_marks
-- The state of dead letters by the last marks that are of them, whichever of the two came first.
update dead_letter
set state = last.state, state_at = last.marked_at, state_by = last.marked_by, job = last.job
from (
    select held.topic, held.partition, held."offset", mark.state, mark.marked_at, mark.marked_by, mark.job
    from dead_letter as held
    left join sink_progress as read on read.topic = held.topic and read.partition = 0
    cross join lateral (
        select * from dead_letter_mark as found
        where found.wait_expiration_uuid = held.wait_expiration_uuid
            and wait_registry_covers(found.dead_letters, held.topic, read.topic_id, held.partition, held."offset")
        order by found."offset" desc
        limit 1
    ) as mark
    where held.wait_expiration_uuid = any(%(wait_ids)s::text[])
) as last
where dead_letter.topic = last.topic and dead_letter.partition = last.partition
    and dead_letter."offset" = last."offset"
    and (dead_letter.job, dead_letter.state) is distinct from (last.job, last.state);

-- name: show_marks_of_staged
-- As `show_marks`, for the dead letters of this batch: hardly any has a mark already.
update dead_letter
set state = last.state, state_at = last.marked_at, state_by = last.marked_by, job = last.job
from (
    select staged.topic, staged.partition, staged."offset", mark.state, mark.marked_at, mark.marked_by, mark.job
    from staged_dead_letter as staged
    left join sink_progress as read on read.topic = staged.topic and read.partition = 0
    cross join lateral (
        select * from dead_letter_mark as found
        where found.wait_expiration_uuid = staged.wait_expiration_uuid
            and wait_registry_covers(found.dead_letters, staged.topic, read.topic_id, staged.partition, staged."offset")
        order by found."offset" desc
        limit 1
    ) as mark
) as last
where dead_letter.topic = last.topic and dead_letter.partition = last.partition
    and dead_letter."offset" = last."offset";

-- name: show_marks_of_others
-- As `show_marks`, for the dead letters that a Kafka Connect sink inserted after their marks were read.
update dead_letter
set state = last.state, state_at = last.marked_at, state_by = last.marked_by, job = last.job
from (
    select distinct on (held.topic, held.partition, held."offset")
        held.topic, held.partition, held."offset", mark.state, mark.marked_at, mark.marked_by, mark.job
    from dead_letter_mark as mark
    inner join dead_letter as held
        on held.wait_expiration_uuid = mark.wait_expiration_uuid and held.state = 'open' and held.job is null
    left join sink_progress as read on read.topic = held.topic and read.partition = 0
    where wait_registry_covers(mark.dead_letters, held.topic, read.topic_id, held.partition, held."offset")
    order by held.topic, held.partition, held."offset", mark."offset" desc
) as last
where dead_letter.topic = last.topic and dead_letter.partition = last.partition
    and dead_letter."offset" = last."offset"
    and dead_letter.state = 'open' and dead_letter.job is null;

-- name: analyze_dead_letters
analyze staged_dead_letter;

-- name: mark_by_dead_letters
-- An `expired` dead letter whose id has a processor's outcome: a late tombstone, or a `failed` dead letter of the same
-- registration or a later one. Looked up as in `mark_by_tombstones`.
with found as (
    select expired.topic, expired.partition, expired."offset", finished.outcome, finished.outcome_time
    from staged_dead_letter as staged
    cross join lateral (
        select topic, partition, "offset", wait_partition, wait_offset
        from dead_letter
        where dead_letter.wait_expiration_uuid = staged.wait_expiration_uuid
            and dead_letter.reason = 'expired' and dead_letter.finished_outcome is null
        offset 0
    ) as expired
    cross join lateral (
        select late.outcome, late.outcome_time
        from late_outcome as late
        where late.wait_expiration_uuid = staged.wait_expiration_uuid
            and late.outcome in ('done', 'retried', 'dead_lettered', 'discarded')
            and (
                expired.wait_offset is null
                or (late.wait_partition = expired.wait_partition and late.wait_offset > expired.wait_offset)
            )
        union all
        select 'dead_lettered', failed.dead_letter_time
        from dead_letter as failed
        where failed.wait_expiration_uuid = staged.wait_expiration_uuid and failed.reason = 'failed'
            and (
                expired.wait_offset is null
                or (failed.wait_partition = expired.wait_partition and failed.wait_offset >= expired.wait_offset)
            )
        limit 1
    ) as finished
)

update dead_letter
set
    finished_late = finished.outcome <> 'dead_lettered', finished_outcome = finished.outcome,
    finished_time = finished.outcome_time
from unnest(
    array(select topic from found),
    array(select partition from found),
    array(select "offset" from found),
    array(select outcome from found),
    array(select outcome_time from found)
) as finished (topic, partition, "offset", outcome, outcome_time)
where dead_letter.topic = finished.topic and dead_letter.partition = finished.partition
    and dead_letter."offset" = finished."offset"
    and dead_letter.finished_outcome is null;
