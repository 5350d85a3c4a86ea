-- Edited records: what a job sends in place of a dead letter's record, and which marks are of such a job.
alter table operation add column replacement jsonb;
alter table dead_letter_mark add column edited boolean not null default false;

create or replace view record_event as
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
    wait_expiration_uuid,
    marked_at,
    case kind when 'redrive' then 'redriven' when 'archive' then 'archived' else 'restored' end
    || case when edited then ', edited' else '' end,
    original_topic,
    original_partition,
    original_offset,
    target_topic,
    target_partition,
    target_offset,
    consumer_group,
    null,
    null,
    null,
    null,
    null,
    'by ' || marked_by || ', job ' || job || coalesce(', next wait ID ' || next_wait_id, '')
from dead_letter_mark
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
