-- What is stuck now, and since when? Open registrations older than so many minutes, by group, topic and instance.
-- What to do: one instance only: is that process alive, and its /health/ready? If it died, wait for the expiry: the
-- sweeper dead-letters what it left. Several instances of one group: its downstream is slow or down, see the handler's
-- latency. `overdue` above 0 for longer than a sweep: is the sweeper running (table sweep)? Where a Kafka Connect source
-- exports (`sweeper.kind`): does it run (`waitreg connect status`)?
-- `stuck_since` is when the sink wrote the row, not when the record was registered: a renewal or a sink that caught up
-- makes it younger (`sink_freshness` tells how far it is behind).
-- Kind: waiting now
\if :{?minutes} \else \set minutes 1 \endif

select
    consumer_group,
    original_topic,
    instance,
    count(*) as registrations,
    count(*) filter (where wait_expiration_time < now()) as overdue,
    min(created_at) as stuck_since,
    min(wait_expiration_time) as first_expires_at,
    min(wait_expiration_uuid) as oldest_wait_id
from wait
where created_at < now() - make_interval(mins => cast(:'minutes' as int))
group by consumer_group, original_topic, instance
order by stuck_since;
