-- What operators did with dead letters: jobs and marks, from the operations topic.

-- One row per job of an operator: a redrive, or dead letters that were archived or restored. Only the sink writes it, from
-- the operations topic.
create table operation (
    job text primary key,
    kind text not null,
    consumer_group text not null,
    state text not null,
    requested_at timestamptz not null,
    requested_by text not null,
    authenticated boolean not null,
    via text not null,
    reason text not null,
    conditions text[] not null,
    allowed text[] not null,
    target text not null,
    rate double precision not null,
    record_limit bigint,
    ends jsonb not null,
    expected jsonb not null,
    counts jsonb not null default '{}',
    cursor jsonb,
    changed_at timestamptz not null,
    changed_by text not null,
    changed_reason text not null default ''
);

create index operation_age on operation (changed_at);

-- One row per delivery that was redriven, archived or restored; never updated. The offset is that of the operations
-- topic, whose order is the order of the marks.
create table dead_letter_mark (
    "offset" bigint primary key,
    job text not null,
    kind text not null,
    state text not null,
    wait_expiration_uuid text not null,
    number int not null,
    consumer_group text not null,
    original_topic text,
    original_partition int,
    original_offset bigint,
    target_topic text,
    target_partition int,
    target_offset bigint,
    next_wait_id text,
    marked_at timestamptz not null,
    marked_by text not null
);

create index dead_letter_mark_wait on dead_letter_mark (wait_expiration_uuid, "offset");
create index dead_letter_mark_next on dead_letter_mark (next_wait_id);
create index dead_letter_mark_place on dead_letter_mark (original_offset, original_partition);
create index dead_letter_mark_job on dead_letter_mark (job);
create index dead_letter_mark_age on dead_letter_mark (marked_at);

-- What an operator did last: open, redriven or archived.
alter table dead_letter
add column state text not null default 'open',
add column state_at timestamptz,
add column state_by text,
add column job text;

-- A record of another client may name a group that is too long for a B-tree.
create index dead_letter_open on dead_letter (left(consumer_group, 250), dead_letter_time) where state = 'open';

create or replace view dead_letter_readable as
select
    topic,
    partition,
    "offset",
    dead_letter_time,
    reason,
    error_class,
    error_message,
    error_stacktrace,
    wait_expiration_uuid,
    idempotency_key,
    original_topic,
    original_partition,
    original_offset,
    original_timestamp,
    original_timestamp_type,
    consumer_group,
    instance,
    delivery,
    wait_partition,
    wait_offset,
    source_topic,
    source_partition,
    source_offset,
    wait_registry_text(key) as key,
    wait_registry_encoding(key) as key_encoding,
    wait_registry_headers(headers) as headers,
    wait_registry_text(body) as body,
    wait_registry_encoding(body) as body_encoding,
    finished_late,
    finished_outcome,
    finished_time,
    created_at,
    state,
    state_at,
    state_by,
    job
from dead_letter;

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
    case kind when 'redrive' then 'redriven' when 'archive' then 'archived' else 'restored' end,
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
