-- The tables rebuilt from the log: of the wait topic partition by partition, and what operators did. Each is one
-- transaction. Staged tables are those of sink.sql.

-- name: stage
create temp table if not exists rebuilt (
    like wait including defaults, primary key (wait_expiration_uuid)
) on commit delete rows;

-- name: next_chunk
truncate staged_wait, staged_tombstone;

-- name: resolve
delete from rebuilt
using staged_tombstone as staged
where rebuilt.wait_expiration_uuid = staged.wait_expiration_uuid and rebuilt.wait_offset < staged.last_offset;

-- name: forget_renewed
delete from rebuilt
using staged_wait as staged
where rebuilt.wait_expiration_uuid = staged.wait_expiration_uuid;

-- name: keep
insert into rebuilt select * from staged_wait;

-- name: keep_ages
update rebuilt
set created_at = wait.created_at
from wait
where wait.wait_expiration_uuid = rebuilt.wait_expiration_uuid and wait.wait_topic = rebuilt.wait_topic
    and wait.wait_partition = rebuilt.wait_partition and wait.wait_offset = rebuilt.wait_offset;

-- name: analyze
analyze rebuilt;

-- name: compare
-- Rows: what the log holds; missing and different in the table; orphans, which the log doesn't hold.
select
    count(rebuilt.wait_expiration_uuid),
    count(*) filter (where wait.wait_expiration_uuid is null),
    count(*) filter (where row(rebuilt.*) is distinct from row(wait.*)
        and rebuilt.wait_expiration_uuid is not null and wait.wait_expiration_uuid is not null),
    count(*) filter (where rebuilt.wait_expiration_uuid is null)
from rebuilt
full join (select * from wait where wait_topic = %(topic)s and wait_partition = %(partition)s) as wait
    using (wait_expiration_uuid);

-- name: remove_rows
delete from wait where wait_topic = %(topic)s and wait_partition = %(partition)s;

-- name: remove_topic
delete from wait where wait_topic = %(topic)s;

-- name: remove_moved
-- The same ID from another topic or partition: the log that is read now counts.
delete from wait using rebuilt where wait.wait_expiration_uuid = rebuilt.wait_expiration_uuid;

-- name: insert_rows
insert into wait select * from rebuilt;

-- name: has_operations
select exists (select from operation) or exists (select from dead_letter_mark) or exists (select from operator_event);

-- name: hold_operations
create temp table held_mark on commit drop as table dead_letter_mark;
create temp table held_operation on commit drop as table operation;
create temp table held_event on commit drop as table operator_event;

-- name: remove_events
delete from operator_event where "offset" >= %(first)s;

-- name: remove_marks
delete from dead_letter_mark where "offset" >= %(first)s;

-- name: remove_operations
delete from operation where requested_at >= %(since)s;

-- name: forget_earlier_twins
-- Marks that were taken for an earlier topic's, since no position said otherwise, and are in this one.
delete from dead_letter_mark as earlier
using dead_letter_mark as found
where earlier."offset" < 0 and found."offset" >= 0
    and found.wait_expiration_uuid = earlier.wait_expiration_uuid
    and (found.job, found.kind, found.number) = (earlier.job, earlier.kind, earlier.number);

-- name: show_all_marks
-- The state of each dead letter by the last mark that is of it, and `open` without one.
update dead_letter
set
    state = coalesce(last.state, 'open'), state_at = last.marked_at, state_by = last.marked_by, job = last.job
from dead_letter as own
left join (
    select distinct on (held.topic, held.partition, held."offset")
        held.topic, held.partition, held."offset", mark.state, mark.marked_at, mark.marked_by, mark.job
    from dead_letter_mark as mark
    inner join dead_letter as held
        on held.wait_expiration_uuid = mark.wait_expiration_uuid
    left join sink_progress as read on read.topic = held.topic and read.partition = 0
    where wait_registry_covers(mark.dead_letters, held.topic, read.topic_id, held.partition, held."offset")
    order by held.topic, held.partition, held."offset", mark."offset" desc
) as last on last.topic = own.topic and last.partition = own.partition and last."offset" = own."offset"
where dead_letter.topic = own.topic and dead_letter.partition = own.partition and dead_letter."offset" = own."offset"
    and (dead_letter.state, dead_letter.state_at, dead_letter.state_by, dead_letter.job)
    is distinct from (coalesce(last.state, 'open'), last.marked_at, last.marked_by, last.job);

-- name: compare_operations
-- How many marks, jobs and other events were missing, different, or not in the topic.
select
    (
        select count(*)
        from dead_letter_mark as found
        full join held_mark as held using ("offset")
        where row(found.*) is distinct from row(held.*)
    ),
    (
        select count(*)
        from operation as found
        full join held_operation as held using (job)
        where row(found.*) is distinct from row(held.*)
    ),
    (
        select count(*)
        from operator_event as found
        full join held_event as held using ("offset")
        where row(found.*) is distinct from row(held.*)
    );
