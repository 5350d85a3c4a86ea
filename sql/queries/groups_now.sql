-- How is each consumer group now? What waits, which dead letters are open, how many are new, and which job isn't done.
-- What to do: `stuck` has waited for longer than a minute (`stuck_now`), `overdue` has expired and isn't exported yet
-- (`overdue`). If `last_hour` rises, see `dead_letters_by_reason`. `open_dead_letters` were neither redriven nor
-- archived; counting them ends at 1,001 per group. `oldest_open` is the place of the oldest one. `by_minute` has the
-- dead letters of the last 60 minutes, the latest one last. `job` is the latest job that runs or is paused. Dead letters
-- that no processor wrote belong to no group.
-- Kind: waiting now
with recursive open_group as (
    -- From one group to the next through the index dead_letter_backlog, so that a burst of one group is one step.
    (
        select consumer_group
        from dead_letter
        where state = 'open' and coalesce(length(consumer_group), 0) < 250 and consumer_group > ''
        order by consumer_group
        limit 1
    )
    union all
    select following.consumer_group
    from open_group
    cross join lateral (
        select dead_letter.consumer_group
        from dead_letter
        where dead_letter.state = 'open'
            and coalesce(length(dead_letter.consumer_group), 0) < 250
            and dead_letter.consumer_group > open_group.consumer_group
        order by dead_letter.consumer_group
        limit 1
    ) as following
),

opened as (
    select open_group.consumer_group, counted.dead_letters, oldest.dead_letter_time, oldest.place
    from (select consumer_group from open_group limit 500) as open_group
    cross join lateral (
        select count(*) as dead_letters
        from (
            select
            from dead_letter
            where dead_letter.state = 'open'
                and coalesce(length(dead_letter.consumer_group), 0) < 250
                and dead_letter.consumer_group = open_group.consumer_group
            -- The order of an index, so that no other plan is taken.
            order by dead_letter.topic, dead_letter.reason, dead_letter.dead_letter_time
            limit 1001
        ) as dead_letters
    ) as counted
    cross join lateral (
        select
            dead_letter.dead_letter_time,
            dead_letter.topic || ':' || dead_letter.partition || ':' || dead_letter."offset" as place
        from dead_letter
        where dead_letter.state = 'open'
            and left(dead_letter.consumer_group, 250) = open_group.consumer_group
            and dead_letter.consumer_group = open_group.consumer_group
        order by dead_letter.dead_letter_time
        limit 1
    ) as oldest
),

waiting as (
    select
        consumer_group,
        count(*) as records,
        count(*) filter (where created_at < now() - interval '1 minute') as stuck,
        count(*) filter (where wait_expiration_time < now()) as overdue
    from wait
    group by consumer_group
),

minutes as (
    select
        consumer_group,
        59 - floor(extract(epoch from now() - dead_letter_time) / 60)::int as minute,
        count(*) as dead_letters
    from dead_letter
    where dead_letter_time > now() - interval '1 hour' and dead_letter_time <= now()
    group by 1, 2
),

recent as (
    select
        minutes.consumer_group,
        sum(minutes.dead_letters)::bigint as dead_letters,
        jsonb_object_agg(minutes.minute, minutes.dead_letters) as by_minute
    from minutes
    group by minutes.consumer_group
),

unfinished as (
    select distinct on (consumer_group) consumer_group, job, state
    from operation
    where state in ('awaiting', 'running', 'paused')
    order by consumer_group, state desc, changed_at desc
)

select
    seen.consumer_group,
    coalesce(waiting.records, 0) as waiting,
    coalesce(waiting.stuck, 0) as stuck,
    coalesce(waiting.overdue, 0) as overdue,
    coalesce(opened.dead_letters, 0) as open_dead_letters,
    opened.dead_letter_time as open_since,
    opened.place as oldest_open,
    coalesce(recent.dead_letters, 0) as last_hour,
    (
        select jsonb_agg(coalesce((recent.by_minute -> minute::text)::int, 0) order by minute)
        from generate_series(0, 59) as minute
    ) as by_minute,
    unfinished.job,
    unfinished.state as job_state
from (
    select consumer_group from waiting
    union
    select consumer_group from opened
    union
    select consumer_group from recent
    union
    select consumer_group from unfinished
) as seen
left join waiting on waiting.consumer_group = seen.consumer_group
left join opened on opened.consumer_group = seen.consumer_group
left join recent on recent.consumer_group = seen.consumer_group
left join unfinished on unfinished.consumer_group = seen.consumer_group
where seen.consumer_group > ''
order by open_dead_letters desc, waiting desc, seen.consumer_group;
