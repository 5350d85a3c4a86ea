-- What happened to one record, by its wait ID?
-- What to do: Read the rows from the top. The last row is `waiting`: it is not finished and expires at the given time.
-- The last row is a dead letter: the record is in `log_topic` at that offset; body and headers are in
-- dead_letter_readable. `finished late`, or an additional `late tombstone`: it was finished, don't redrive it.
-- `quarantined`: the wait record can't be read, and the error says why. No row: it was finished in time (a finished
-- record leaves no row), or is not consumed yet, or is older than the retention, or the tables are late
-- (`sink_freshness`), or the ID is wrong.
-- Kind: one instance, one record
select
    at,
    event,
    original_topic,
    original_partition,
    original_offset,
    consumer_group,
    instance,
    delivery,
    log_topic,
    log_partition,
    log_offset,
    detail
from record_event
where wait_expiration_uuid = lower(trim(cast(:'id' as text)))
order by at, log_topic, log_offset;
