-- What did the last sweeps do?
-- What to do: sweeps that had nothing due are left out, but for the newest of each sweeper, its sign of life: older
-- than a few sweeper.interval_s, and that one is down. `failed` or `partial`: `left_out` says why, and what stands is
-- tried again at the next sweep. `superseded`: finished, renewed or already exported while the sink was behind, and
-- rightly left alone. `set_aside`: too large or without a topic, the sweeper's log names each. A `skipped` one found
-- another sweeper at work. Where a Kafka Connect source exports, no sweep comes any more.
-- Kind: the system
\if :{?hours} \else \set hours 24 \endif
\if :{?rows} \else \set rows 20 \endif

with recent as (
    select
        *,
        row_number() over (partition by wait_topic, instance order by started_at desc) as age
    from sweep
    where started_at > now() - make_interval(hours => cast(:'hours' as int))
)

select
    started_at,
    round(duration_s::numeric, 3) as duration_s,
    result,
    due,
    exported,
    redelivered,
    superseded,
    set_aside,
    (select string_agg(distinct item ->> 'reason', ' | ') from jsonb_array_elements(skipped) as item) as left_out,
    instance,
    wait_topic
from recent
where age = 1 or due > 0 or result not in ('done', 'skipped')
order by started_at desc
limit cast(:'rows' as int);
