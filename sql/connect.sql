-- What a sweeper and `waitreg connect` ask Postgres where Kafka Connect works.

-- name: outbox_read
-- Whether Debezium's source reads this schema's outbox now: a row if so. Every role may ask this.
select 1
from pg_replication_slots
where slot_name = 'waitreg_' || current_schema() || '_expired' and database = current_database() and active;

-- name: outbox_filled
-- How long ago a source last put a row into the outbox, s; null when that is longer ago than silent_most_s.
select extract(epoch from clock_timestamp() - max(created_at))::float8
from expired_outbox
where wait_topic = %(topic)s and created_at > clock_timestamp() - make_interval(secs => %(silent_most_s)s);

-- name: due_places
-- Which IDs a sweep looks for in the log, and from where on.
select wait_expiration_uuid, wait_offset
from wait
where wait_topic = %(topic)s
    and wait_partition = %(partition)s
    and wait_expiration_time < now() - make_interval(secs => %(skew_s)s)
limit %(limit)s;
