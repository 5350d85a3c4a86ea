-- How many records are waiting, by the instance that took them?
-- What to do: If `newest_since` of one instance no longer changes while that of others does, the instance has died, is
-- stuck, or has lost its partitions. If it is dead, no record is lost: they are exported after `last_expires_at`, and
-- `instance_in_flight` lists them. If it runs, check its /health/ready and its downstream. `oldest_since` and
-- `newest_since` are when the sink wrote the rows, not when the records were registered. If the sink is behind
-- (`sink_freshness`), they stop for all instances.
-- Kind: waiting now
select
    instance,
    consumer_group,
    count(*) as records,
    count(*) filter (where wait_expiration_time < now()) as overdue,
    min(created_at) as oldest_since,
    max(created_at) as newest_since,
    max(wait_expiration_time) as last_expires_at
from wait
group by instance, consumer_group
order by records desc, instance, consumer_group;
