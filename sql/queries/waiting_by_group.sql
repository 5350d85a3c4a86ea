-- How many records are waiting, by consumer group?
-- What to do: `overdue` should be 0 or nearly so: ask `overdue` what holds the sweeper up. One group far above its
-- usual number: its downstream is slow or down, see `waiting_by_instance`; all groups at once: Kafka, the network, or
-- a sink that is behind (`sink_freshness`) and still shows what has been finished.
-- `oldest_since` is when the sink wrote the row, not when the record was registered: a renewal or a sink that caught up
-- makes it younger (`sink_freshness` tells how far it is behind).
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
