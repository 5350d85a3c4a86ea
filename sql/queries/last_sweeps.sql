-- What did the last sweeps do?
-- What to do: Of sweeps without due rows only the newest per sweeper is shown; if it is older than a few
-- sweeper.interval_s, that sweeper is down. For `failed` and `partial`, `skipped` gives the reason, and the next sweep
-- tries these rows again. `superseded` rows were settled, renewed or exported while the sink was behind, so they were
-- not exported. `unsendable` rows are too large or have no topic; the sweeper's log names each. A sweep with the result
-- `skipped` found another sweeper at work. If a Kafka Connect source exports, there are no sweeps.
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
    coalesce(cast(counts ->> 'exported' as bigint), 0) as exported,
    coalesce(cast(counts ->> 'redelivered' as bigint), 0) as redelivered,
    coalesce(cast(counts ->> 'superseded' as bigint), 0) as superseded,
    coalesce(cast(counts ->> 'unsendable' as bigint), 0) as unsendable,
    (select string_agg(distinct item ->> 'reason', ' | ') from jsonb_array_elements(skipped) as item) as skipped,
    instance,
    wait_topic
from recent
where age = 1 or due > 0 or result not in ('done', 'skipped')
order by started_at desc
limit cast(:'rows' as int);
