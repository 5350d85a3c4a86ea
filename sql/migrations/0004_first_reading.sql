-- Until the log has been read once to where it ended when the reading began, the view isn't complete up to any time: the
-- outbox for Connect sources waits for that.

-- Where the log ended when it began to be read from its start: below it the view shows what later entries resolve.
alter table sink_progress add column read_until bigint not null default 0;

-- Which registrations are due, a row a partition of the wait topic that has any: those that expire before due_before.
-- Where our sink runs, that is how far its view is complete; a partition without a position isn't due at all, nor is any
-- while a topic is read for the first time: the wait topic's tombstones, or what the dead letter topics show as exported,
-- may be still to come. Elsewhere the view may be settle_s behind. And only what came before standing_since is due there:
-- a sink that was started again shows once more what its tombstones are about to remove.
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
