-- Indexes for the incident queries (origin, key, time of a dead letter) and a view of a record's history. `create
-- index` without `concurrently` blocks the sink for the seconds of the build, so the tables fall behind for that time;
-- docs/decisions/0006-indexes-for-incidents.md has the numbers. Keys may be too long for a B-tree, so their beginning
-- is indexed, and a query compares both.

create index wait_place on wait (original_offset, original_partition);
create index wait_key on wait (substring(original_key from 1 for 64));
-- Later deliveries; the first one has the key as its wait ID.
create index wait_idempotency_key on wait (idempotency_key) where idempotency_key <> wait_expiration_uuid;

create index dead_letter_time on dead_letter (dead_letter_time);
create index dead_letter_place on dead_letter (original_offset, original_partition);
create index dead_letter_key on dead_letter (substring(key from 1 for 64));
create index dead_letter_idempotency_key on dead_letter (idempotency_key)
where idempotency_key <> wait_expiration_uuid;

create index quarantine_wait on quarantine (wait_registry_text(substring(key from 1 for 36)));
create index quarantine_headers on quarantine using gin (headers jsonb_path_ops);

-- Bytes as people type them: text if possible, else \x and hexadecimal digits.
create function wait_registry_key(bytes bytea) returns text
language sql immutable strict parallel restricted
return case
    when wait_registry_encoding(bytes) = 'utf-8' and left(wait_registry_text(bytes), 2) <> '\x'
        then wait_registry_text(bytes)
    else '\x' || encode(bytes, 'hex')
end;

-- The inverse of wait_registry_key.
create function wait_registry_key_bytes(shown text) returns bytea
language sql immutable strict parallel safe
return case when left(shown, 2) = '\x' then decode(substr(shown, 3), 'hex') else convert_to(shown, 'UTF8') end;

-- The history of a registration, one row per event; order by at.
create view record_event as
select
    wait_expiration_uuid,
    created_at as at,
    'waiting' as event,
    original_topic,
    original_partition,
    original_offset,
    source_topic,
    source_partition,
    source_offset,
    consumer_group,
    instance,
    delivery,
    wait_topic as log_topic,
    wait_partition as log_partition,
    wait_offset as log_offset,
    'expires ' || to_char(wait_expiration_time at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
    || coalesce(', then ' || expiry_policy, '') as detail
from wait
union all
select
    wait_expiration_uuid,
    dead_letter_time,
    'dead letter: ' || coalesce(reason, 'not ours')
    || case when finished_late then ', finished late: ' || coalesce(finished_outcome, 'unknown') else '' end,
    original_topic,
    original_partition,
    original_offset,
    source_topic,
    source_partition,
    source_offset,
    consumer_group,
    instance,
    delivery,
    topic,
    partition,
    "offset",
    concat_ws(': ', error_class, error_message)
from dead_letter
union all
select
    wait_expiration_uuid,
    outcome_time,
    'late tombstone: ' || coalesce(outcome, 'unknown'),
    null,
    null,
    null,
    null,
    null,
    null,
    null,
    null,
    null,
    wait_topic,
    wait_partition,
    wait_offset,
    'came after another outcome, or after the expiry'
from late_outcome
union all
select
    wait_registry_text(substring(key from 1 for 36)),
    record_time,
    'quarantined',
    null,
    null,
    null,
    null,
    null,
    null,
    null,
    null,
    null,
    topic,
    partition,
    "offset",
    error
from quarantine;
