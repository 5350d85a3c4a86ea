-- Which records have been waiting longest?
-- What to do: If topic and instance are the same in all rows, see `waiting_by_instance`. If `delivery` is above 1, the
-- record was redelivered and is stuck again: see `record_by_wait_id` for it and `poison_keys` for its key. If a record
-- is much older than its group's TTL, see `overdue`. `waiting_since` is when the sink wrote the row, not when the
-- record was registered. A renewal, or a sink that caught up, makes it later (`sink_freshness` shows the lag).
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
