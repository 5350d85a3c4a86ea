-- How many records are waiting, by consumer group?
-- What to do: `overdue` should be near 0; otherwise see the query `overdue`. One group far above its usual number: its
-- downstream is slow or down, see `waiting_by_instance`. All groups: check Kafka, the network, and whether the sink is
-- behind (`sink_freshness`) and still shows finished records. `oldest_since` is when the sink wrote the row, not when
-- the record was registered. A renewal, or a sink that caught up, makes it later (`sink_freshness` shows the lag).
-- Kind: waiting now
with parts as (
    select
        consumer_group,
        original_topic,
        instance,
        count(*) as records,
        count(*) filter (where wait_expiration_time < now()) as overdue,
        min(created_at) as oldest_since,
        min(wait_expiration_time) as first_expires_at,
        max(delivery) as highest_delivery
    from wait
    group by consumer_group, original_topic, instance
)

select
    consumer_group,
    sum(records)::bigint as records,
    sum(overdue)::bigint as overdue,
    count(distinct original_topic) as topics,
    count(distinct instance) as instances,
    min(oldest_since) as oldest_since,
    min(first_expires_at) as first_expires_at,
    max(highest_delivery) as highest_delivery
from parts
group by consumer_group
order by records desc, consumer_group;
