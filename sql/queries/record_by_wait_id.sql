-- What happened to one record, by its wait id?
-- What to do: read it from the top. Ends in `waiting`: not finished yet, it expires at the time told. Ends in a dead
-- letter: the record is in `log_topic` at that place, body and headers in dead_letter_readable. `finished late`, or a
-- `late tombstone` beside it: it was finished after all, don't redeliver. `quarantined`: the wait record can't be read,
-- the error says why. No row at all: it was finished in time (nothing is kept then), isn't consumed yet, is
-- older than the retention, the view is behind (`sink_freshness`), or the id is mistyped.
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
