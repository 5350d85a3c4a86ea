-- During the initial load of a topic the tables aren't complete up to any time, so the outbox for Connect sources
-- waits.

-- The end of the topic when the initial load began; until it is reached, wait shows registrations that are settled.
alter table sink_progress add column read_until bigint not null default 0;

-- The due registrations, one row per partition of the wait topic: those that expire before due_before. With our sink
-- that is the time up to which the tables are complete. A partition without a position isn't due, and none is during
-- the initial load of a topic, since tombstones or dead letters may be unread. With another sink the tables may be
-- settle_s behind, and only registrations from before standing_since are due: a restarted sink shows settled
-- registrations again until it reads their tombstones.
create or replace function wait_registry_due(topic text, skew_s double precision, settle_s double precision)
returns table (wait_partition int, due_before timestamptz, standing_since timestamptz)
language sql stable parallel safe
begin atomic
    with recursive found (partition) as (
        select min(wait.wait_partition) from wait where wait.wait_topic = wait_registry_due.topic
        union all
        select (
            select min(wait.wait_partition)
            from wait
            where wait.wait_topic = wait_registry_due.topic and wait.wait_partition > found.partition
        )
        from found
        where found.partition is not null
    )
    select
        found.partition,
        case
            when progress.partition is null then now() - make_interval(secs => wait_registry_due.settle_s)
            else least(now(), progress.position_time)
        end - make_interval(secs => wait_registry_due.skew_s),
        case
            when progress.partition is null then now() - make_interval(secs => wait_registry_due.settle_s)
            else 'infinity'
        end
    from found
    left join sink_progress as progress
        on progress.topic = wait_registry_due.topic and progress.partition = found.partition
    where found.partition is not null
        and case
            when progress.partition is null
                then not exists (select from sink_progress as any_of where any_of.topic = wait_registry_due.topic)
            else not exists (select from sink_progress as reading where reading.next_offset < reading.read_until)
        end;
end;
