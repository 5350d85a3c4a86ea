-- What is stuck now, and since when? Open registrations older than a minute, by group, topic and instance.
-- What to do: One instance only: check whether its process runs, and its /health/ready. If it died, wait for the
-- expiry: the sweeper dead-letters its records. Several instances of one group: the downstream is slow or down; check
-- the handler's latency. If `overdue` stays above 0 for longer than a sweep, check that the sweeper runs
-- (`last_sweeps`), or the connectors if a Kafka Connect source exports. `stuck_since` is
-- when the sink wrote the row, not when the record was registered. A renewal, or a sink that caught up, makes it later
-- (`sink_freshness` shows the lag). With minutes=0, it lists all registrations, and with group=... those of one group.
-- Kind: waiting now
\if :{?minutes} \else \set minutes 1 \endif
\if :{?group} \else \set group '' \endif

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
    and (:'group' = '' or consumer_group = :'group')
group by consumer_group, original_topic, instance
order by stuck_since;
