-- How many rows came a day, and about how many bytes is that?
-- What to do: Multiply a usual day by sweeper.retention_days: dead_letter, quarantine, late_outcome and sweep will hold
-- that many rows, and `about` is their size with indexes. A day of `wait` appears as long as a registration of that day
-- is open; for any day except today and yesterday see `overdue`. For an unusual day see `burst_timeline` and
-- `dead_letters_by_reason`.
-- Kind: the system
\if :{?days} \else \set days 7 \endif

with days as (
    select day, day + interval '1 day' as until
    from generate_series(
        date_trunc('day', now() - make_interval(days => cast(:'days' as int))), now(), interval '1 day'
    ) as day
),

-- Each day is counted once, in an index, without working out the day of each row. Only wait has no index by this time.
counted as materialized (
    select 'wait' as table_name, date_trunc('day', created_at) as day, count(*) as rows
    from wait
    where created_at >= (select min(day) from days)
    group by day
    union all
    select 'dead_letter', day, (select count(*) from dead_letter where created_at >= day and created_at < until)
    from days
    union all
    select 'late_outcome', day, (select count(*) from late_outcome where created_at >= day and created_at < until)
    from days
    union all
    select 'quarantine', day, (select count(*) from quarantine where created_at >= day and created_at < until)
    from days
    union all
    select 'sweep', day, (select count(*) from sweep where started_at >= day and started_at < until)
    from days
)

select
    counted.table_name,
    counted.day,
    counted.rows,
    pg_size_pretty(
        (counted.rows * pg_total_relation_size(class.oid) / greatest(stats.n_live_tup, counted.rows, 1))::bigint
    ) as about
from counted
join pg_class as class
    on class.relname = counted.table_name and class.relkind = 'r'
    and class.relnamespace = to_regnamespace(quote_ident(current_schema()))
left join pg_stat_user_tables as stats on stats.relid = class.oid
where counted.rows > 0
order by counted.day desc, counted.table_name;
