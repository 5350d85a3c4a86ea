-- Which records have been waiting longest?
-- What to do: the same topic and instance throughout: see `waiting_by_instance`. `delivery` above 1: it was delivered
-- again and hangs again, read it (`record_by_wait_id`) and its key (`poison_keys`). Much older than the group's TTL:
-- `overdue`. `waiting_since` is when the sink wrote the row, not when the record was registered: a renewal or a sink
-- that caught up makes it younger (`sink_freshness` tells how far it is behind).
-- Kind: waiting now
\if :{?rows} \else \set rows 20 \endif

select
    created_at as waiting_since,
    date_trunc('second', now() - created_at) as waiting_for,
    wait_expiration_time as expires_at,
    wait_expiration_uuid as wait_id,
    original_topic,
    original_partition,
    original_offset,
    wait_registry_key(original_key) as key,
    consumer_group,
    instance,
    delivery
from wait
order by created_at, wait_expiration_uuid
limit cast(:'rows' as int);
