-- What the sweeper counts of dead letters and redrives for its metrics; it changes nothing. Tables are found by
-- search_path.

-- name: open_dead_letters
-- In the order of the index dead_letter_backlog, which holds all that is asked for.
select
    coalesce(consumer_group, '') as consumer_group,
    topic,
    coalesce(reason, 'foreign') as reason,
    count(*) as dead_letters,
    greatest(0, extract(epoch from clock_timestamp() - min(dead_letter_time)))::float8 as oldest_s
from dead_letter
where state = 'open' and coalesce(length(consumer_group), 0) < 250
group by dead_letter.consumer_group, dead_letter.topic, dead_letter.reason;

-- name: new_error_classes
-- Steps from one error class to the next through the index dead_letter_error, so a burst of one class is one step.
-- Dead letters of a class are counted up to a limit.
with recursive class as (
    (
        select consumer_group, topic, error_class
        from dead_letter
        where length(consumer_group) < 250 and length(error_class) <= 256
        order by consumer_group, topic, error_class
        limit 1
    )
    union all
    select following.consumer_group, following.topic, following.error_class
    from class
    cross join lateral (
        select dead_letter.consumer_group, dead_letter.topic, dead_letter.error_class
        from dead_letter
        where length(dead_letter.consumer_group) < 250
            and length(dead_letter.error_class) <= 256
            and (dead_letter.consumer_group, dead_letter.topic, dead_letter.error_class)
            > (class.consumer_group, class.topic, class.error_class)
        order by dead_letter.consumer_group, dead_letter.topic, dead_letter.error_class
        limit 1
    ) as following
)

select class.consumer_group, class.topic, count(*) as classes, sum(recent.dead_letters)::bigint as dead_letters
from (select * from class limit %(most_classes)s) as class
cross join lateral (
    select count(*) as dead_letters
    from (
        select
        from dead_letter
        where length(dead_letter.consumer_group) < 250
            and length(dead_letter.error_class) <= 256
            and dead_letter.consumer_group = class.consumer_group
            and dead_letter.topic = class.topic
            and dead_letter.error_class = class.error_class
            and dead_letter.dead_letter_time >= now() - make_interval(secs => %(recent_s)s)
        limit %(most_of_class)s
    ) as dead_letters
) as recent
where recent.dead_letters > 0
    and not exists (
        select
        from dead_letter as earlier
        where length(earlier.consumer_group) < 250
            and length(earlier.error_class) <= 256
            and earlier.consumer_group = class.consumer_group
            and earlier.topic = class.topic
            and earlier.error_class = class.error_class
            and earlier.dead_letter_time < now() - make_interval(secs => %(recent_s)s)
            and earlier.dead_letter_time >= now() - make_interval(secs => %(recent_s)s + %(known_s)s)
        offset 0
    )
group by class.consumer_group, class.topic;

-- name: redrive_categories
select counted.category, sum(counted.dead_letters::bigint)::bigint as dead_letters
from operation
cross join lateral jsonb_each_text(operation.counts) as counted (category, dead_letters)
where operation.kind = 'redrive' and operation.changed_at >= now() - make_interval(secs => %(day_s)s)
group by counted.category;

-- name: redrive_outcomes
-- Only the newest marks: each one is looked up in two tables.
select redriven.consumer_group, redriven.outcome, count(*) as records
from (
    select
        mark.consumer_group,
        case
            when exists (
                select from wait where wait.wait_expiration_uuid = mark.next_wait_id offset 0
            ) then 'waiting'
            when exists (
                select from dead_letter where dead_letter.wait_expiration_uuid = mark.next_wait_id offset 0
            ) then 'dead_letter'
            else 'other'
        end as outcome
    from (
        select consumer_group, next_wait_id
        from dead_letter_mark
        where kind = 'redrive' and marked_at >= now() - make_interval(secs => %(recent_s)s)
        order by marked_at desc
        limit %(most_marks)s
    ) as mark
) as redriven
group by redriven.consumer_group, redriven.outcome;

-- name: jobs
-- Those that aren't finished, of any age, and those of a day that are.
select state, count(*) as jobs
from (
    select state
    from operation
    where state in ('awaiting', 'running', 'paused')
    union all
    select state
    from operation
    where changed_at >= now() - make_interval(secs => %(day_s)s) and state not in ('awaiting', 'running', 'paused')
) as job
group by state;

-- name: longest_silence
select coalesce(extract(epoch from clock_timestamp() - min(changed_at)), 0)::float8 as silence_s
from operation
where state in ('awaiting', 'running', 'paused') and state = 'running';

-- name: operations_staleness
select extract(epoch from clock_timestamp() - min(position_time))::float8 as staleness_s
from sink_progress
where topic = %(operations_topic)s;
