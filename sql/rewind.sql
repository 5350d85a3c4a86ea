-- What `waitreg rewind` asks: which records of a group are registered now, and whether the tables know all of them.

-- name: registered
-- Where a record was polled is its source, if this system delivered it again.
select coalesce(source_topic, original_topic), coalesce(source_partition, original_partition), coalesce(source_offset, original_offset)
from wait
where consumer_group = %(group)s and wait_topic = %(wait_topic)s and coalesce(source_topic, original_topic) = any(%(topics)s);

-- name: positions
select partition, next_offset, read_until
from sink_progress
where topic = %(wait_topic)s and topic_id = %(topic_id)s;
