-- How far and how stale is the view? Per topic and partition: the next offset to read and how old the picture is.
-- What to do: `heard_from` older than two minutes: the sink is down or can't write, see its log and /health/ready.
-- `as_of` old while `heard_from` is fresh: it is catching up. `as_of` older than half of the wait topic's
-- delete.retention.ms: sink and sweeper refuse to go on, run `waitreg rebuild`. `first_reading` not 0: the log is read
-- for the first time, and so many offsets are left of what stood in it then; until it is 0 the view shows records that
-- were finished long ago, and a Kafka Connect source exports nothing.
-- Beside a Kafka Connect sink nothing stands here: `waitreg connect status` tells its lag.
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
