-- How many records are waiting, by the partition they came from?
-- What to do: one partition far above the others: a hot key (`poison_keys`) or a consumer that got a partition it
-- can't keep up with. `lowest_offset` far below `highest_offset`: an old record hangs among new ones; read it with
-- `record_by_offset`. The committed offset is past all of these: they are safe whatever the consumer does.
-- `oldest_since` is when the sink wrote the row, not when the record was registered: a renewal or a sink that caught up
-- makes it younger (`sink_freshness` tells how far it is behind).
-- Kind: waiting now
select
    original_topic,
    original_partition,
    consumer_group,
    count(*) as records,
    count(*) filter (where wait_expiration_time < now()) as overdue,
    min(original_offset) as lowest_offset,
    max(original_offset) as highest_offset,
    min(created_at) as oldest_since
from wait
group by original_topic, original_partition, consumer_group
order by records desc, original_topic, original_partition, consumer_group;
