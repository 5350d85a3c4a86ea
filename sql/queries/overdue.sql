-- What has expired and isn't exported yet, and what holds it up?
-- What to do: Rows are normal for the time of one sweep. If `last_sweep_at` is old or empty, the sweeper is down: start
-- it. `skipped` is why the last sweep skipped this partition: for a reason with `position` run `waitreg rebuild`; for a
-- reason with `transaction` wait, since the transaction ends by itself. If `view_behind` is large, the sink is behind
-- and the rows may be finished (`sink_freshness`). If none of this applies, the rows are unsendable (too large, or
-- without a topic): the sweeper's log names each. If a Kafka Connect source exports (`sweeper.kind`), no sweep is
-- expected: Kafka Connect's REST API (GET /connectors?expand=status) shows whether expired.source and
-- expired.tombstones run, the worker's log why not.
-- Kind: waiting now
with due as (
    select
        wait_topic,
        wait_partition,
        count(*) as records,
        min(wait_expiration_time) as first_expired_at
    from wait
    where wait_expiration_time < now()
    group by wait_topic, wait_partition
)

select
    due.wait_topic,
    due.wait_partition,
    due.records,
    due.first_expired_at,
    date_trunc('second', now() - due.first_expired_at) as overdue_for,
    date_trunc('second', now() - progress.position_time) as view_behind,
    latest.started_at as last_sweep_at,
    latest.result as last_result,
    coalesce(cast(latest.counts ->> 'unsendable' as bigint), 0) as unsendable,
    (
        select string_agg(item ->> 'reason', ' | ')
        from jsonb_array_elements(latest.skipped) as item
        where coalesce(cast(item ->> 'partition' as int), due.wait_partition) = due.wait_partition
    ) as skipped
from due
left join sink_progress as progress on progress.topic = due.wait_topic and progress.partition = due.wait_partition
left join lateral (
    select started_at, result, counts, skipped
    from sweep
    where wait_topic = due.wait_topic and result <> 'skipped'
    order by started_at desc
    limit 1
) as latest on true
order by due.first_expired_at;
