-- How many records are waiting, by the topic they came from?
-- What to do: one topic only: look at what is special about its records or its handler, `oldest_waits` names some. A
-- topic with several groups stands once for each: only one of them growing is that group's trouble, all of them is the
-- topic's.
-- `oldest_since` is when the sink wrote the row, not when the record was registered: a renewal or a sink that caught up
-- makes it younger (`sink_freshness` tells how far it is behind).
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
