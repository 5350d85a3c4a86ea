-- What happened minute by minute, in the last hour or between two times?
-- What to do: Give from=... and to=..., any time that Postgres reads, or for instance '1 hour ago'; the default is the
-- last hour. `still_waiting` counts registrations that the sink wrote in that minute and that are open now. Finished
-- records have no row; a renewal, or a sink that caught up, moves a registration to a later minute (`sink_freshness`).
-- If `failed` rises, the downstream had a problem. A block of `expired` one TTL after a gap means that a process died
-- in the gap. See `dead_letters_over_time` for the errors and `waiting_by_instance` for the instances.
-- Kind: dead letters
\if :{?from} \else \set from '' \endif
\if :{?to} \else \set to 'now' \endif

with span (from_time, to_time) as (
    select
        coalesce(
            case
                when cast(:'from' as text) like '% ago' then now() + cast(cast(:'from' as text) as interval)
                else cast(nullif(cast(:'from' as text), '') as timestamptz)
            end,
            now() - interval '1 hour'
        ),
        case
            when cast(:'to' as text) like '% ago' then now() + cast(cast(:'to' as text) as interval)
            else cast(cast(:'to' as text) as timestamptz)
        end
),

events as (
    select
        date_trunc('minute', created_at) as minute,
        count(*) as still_waiting,
        0 as failed,
        0 as expired,
        0 as other
    from wait
    where created_at >= (select from_time from span) and created_at < (select to_time from span)
    group by 1
    union all
    select
        date_trunc('minute', dead_letter_time),
        0,
        count(*) filter (where reason = 'failed'),
        count(*) filter (where reason = 'expired'),
        count(*) filter (where reason not in ('failed', 'expired') or reason is null)
    from dead_letter
    where dead_letter_time >= (select from_time from span) and dead_letter_time < (select to_time from span)
    group by 1
)

select
    minute,
    sum(still_waiting)::bigint as still_waiting,
    sum(failed)::bigint as failed,
    sum(expired)::bigint as expired,
    sum(other)::bigint as other_dead_letters
from events
group by minute
order by minute;
