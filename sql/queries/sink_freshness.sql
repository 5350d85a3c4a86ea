-- How far and how stale are the tables? Per topic and partition: the next offset to read, and the age of the rows.
-- What to do: If `heard_from` is older than two minutes, the sink is down or can't write: see its log and
-- /health/ready. If `as_of` is old and `heard_from` is recent, it is catching up. If `as_of` is older than half of the
-- wait topic's delete.retention.ms, sink and sweeper refuse to continue: run `waitreg rebuild`. `first_reading` above 0
-- is the number of offsets left in the first reading of the topic; until it is 0, the tables show records that were
-- finished long ago, and a Kafka Connect source exports nothing. With a Kafka Connect sink there are no rows: its
-- lag is that of its consumer group.
-- Kind: the system
select
    topic,
    partition,
    next_offset,
    position_time as as_of,
    now() - position_time as behind,
    greatest(read_until - next_offset, 0) as first_reading,
    seen_at as heard_from,
    now() - seen_at as silent_for
from sink_progress
order by position_time, topic, partition;
