-- How many records are waiting, by the instance that took them?
-- What to do: an instance whose `newest_since` has stopped while its neighbours' goes on has died, hangs, or has lost
-- its partitions. Dead: nothing is lost, what it left is exported after `last_expires_at`; `instance_in_flight` names
-- it. Alive: ask its /health/ready, and its downstream. `oldest_since` and `newest_since` are when the sink
-- wrote the rows, not when the records were registered: a renewal or a sink that caught up makes them younger; with a
-- sink that is behind (`sink_freshness`) they stop for everybody.
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
