-- How many records are waiting, by the partition they came from?
-- What to do: If one partition is far above the others, look for a hot key (`poison_keys`) or a consumer that can't
-- keep up. If `lowest_offset` is far below `highest_offset`, an old record is stuck among new ones: see
-- `record_by_offset`. The committed offset has passed all of these records: they are safe whatever happens to the
-- consumer. `oldest_since` is when the sink wrote the row, not when the record was registered. A renewal, or a sink
-- that caught up, makes it later (`sink_freshness` shows the lag).
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
