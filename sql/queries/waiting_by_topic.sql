-- How many records are waiting, by the topic they came from?
-- What to do: One topic only: look for what is special about its records or its handler; `oldest_waits` names some. A
-- topic has a row per group that reads it: if only one group grows, the cause is in that group; if all grow, it is in
-- the topic. `oldest_since` is when the sink wrote the row, not when the record was registered. A renewal, or a sink
-- that caught up, makes it later (`sink_freshness` shows the lag).
-- Kind: waiting now
select
    original_topic,
    consumer_group,
    count(*) as records,
    count(*) filter (where wait_expiration_time < now()) as overdue,
    min(created_at) as oldest_since,
    min(wait_expiration_time) as first_expires_at,
    pg_size_pretty(sum(octet_length(body))::bigint) as bodies
from wait
group by original_topic, consumer_group
order by records desc, original_topic, consumer_group;
