-- The first schema.

create table wait_registry_migration (
    version int primary key,
    name text not null,
    checksum text not null,
    applied_at timestamptz not null default now()
);

-- One row per registration without a later entry in the wait topic. Only the sink writes it.
-- The key is text, since a uuid column breaks the deletes of every JDBC sink.
create table wait (
    wait_expiration_uuid text primary key,
    -- Postgres finds a column of a row by reading those before it, so what pages count by comes first (decision 0038).
    consumer_group text,
    original_topic text not null,
    instance text,
    wait_expiration_time timestamptz not null,
    created_at timestamptz not null default now(),
    wait_topic text not null,
    wait_partition int not null,
    wait_offset bigint not null,
    original_partition int,
    original_offset bigint,
    original_key bytea,
    original_timestamp timestamptz,
    original_timestamp_ms bigint,
    original_timestamp_type text,
    original_headers jsonb,
    body bytea,
    delivery int,
    dead_letter_topic text,
    expiry_policy text,
    max_deliveries int,
    -- The wait ID of the record's first delivery, which all its deliveries share, and so text as wait IDs are.
    idempotency_key text,
    source_topic text,
    source_partition int,
    source_offset bigint,
    traceparent text,
    tracestate text
) with (
    -- Nearly every row lives for seconds, so dead rows are vacuumed long before a fifth of the table is dead.
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_analyze_scale_factor = 0.05
);

-- The sweeper selects the due rows of a partition.
create index wait_due on wait (wait_topic, wait_partition, wait_expiration_time);

-- Position, idempotence guard and fence of the sink; advanced only by compare-and-set on next_offset.
create table sink_progress (
    topic text not null,
    topic_id text not null,
    partition int not null,
    next_offset bigint not null,
    position_time timestamptz not null,
    seen_at timestamptz not null,
    primary key (topic, partition)
);

-- One row per dead letter, identified by its topic, partition and offset. Foreign records are kept with reason null.
create table dead_letter (
    topic text not null,
    partition int not null,
    "offset" bigint not null,
    dead_letter_time timestamptz,
    reason text,
    error_class text,
    consumer_group text,
    original_topic text,
    error_message text,
    error_stacktrace text,
    wait_expiration_uuid text,
    idempotency_key text,
    original_partition int,
    original_offset bigint,
    original_timestamp timestamptz,
    original_timestamp_ms bigint,
    original_timestamp_type text,
    instance text,
    delivery int,
    wait_partition int,
    wait_offset bigint,
    source_topic text,
    source_partition int,
    source_offset bigint,
    key bytea,
    headers jsonb,
    body bytea,
    finished_late boolean not null default false,
    finished_outcome text,
    finished_time timestamptz,
    created_at timestamptz not null default now(),
    primary key (topic, partition, "offset")
);

create index dead_letter_wait on dead_letter (wait_expiration_uuid);
create index dead_letter_unfinished on dead_letter (wait_expiration_uuid) where reason = 'expired' and not finished_late;
create index dead_letter_age on dead_letter (created_at);

-- Tombstones that came after their registration was settled or had expired: the work was done twice, or finished late.
-- They mark the `expired` dead letter of the same wait ID, which may be read before or after.
create table late_outcome (
    wait_expiration_uuid text not null,
    outcome text,
    wait_topic text not null,
    wait_partition int not null,
    wait_offset bigint not null,
    outcome_time timestamptz,
    created_at timestamptz not null default now(),
    primary key (wait_topic, wait_partition, wait_offset)
);

create index late_outcome_wait on late_outcome (wait_expiration_uuid);
create index late_outcome_age on late_outcome (created_at);

-- Records of the wait topic that can't be decoded.
create table quarantine (
    topic text not null,
    partition int not null,
    "offset" bigint not null,
    record_time timestamptz,
    error text not null,
    key bytea,
    headers jsonb,
    body bytea,
    created_at timestamptz not null default now(),
    primary key (topic, partition, "offset")
);

create index quarantine_age on quarantine (created_at);

-- One row per sweep that had due rows or failed. Only the sweeper writes it.
create table sweep (
    id bigint generated always as identity primary key,
    wait_topic text not null,
    started_at timestamptz not null,
    duration_s double precision not null,
    due bigint not null,
    counts jsonb not null default '{}', -- the due rows by outcome: exported, redelivered, superseded, unseen, unsendable
    skipped jsonb not null,
    result text not null,
    instance text
);

create index sweep_started on sweep (started_at);

-- Bytes as text, or as base64 if they aren't UTF-8 or hold NUL, which text can't.
create function wait_registry_text(bytes bytea) returns text
language plpgsql immutable strict parallel restricted as $$
begin
    return convert_from(bytes, 'UTF8');
exception when character_not_in_repertoire or untranslatable_character then
    return encode(bytes, 'base64');
end $$;

-- The encoding that wait_registry_text uses for these bytes: 'utf-8' or 'base64'.
create function wait_registry_encoding(bytes bytea) returns text
language plpgsql immutable strict parallel restricted as $$
begin
    perform convert_from(bytes, 'UTF8');
    return 'utf-8';
exception when character_not_in_repertoire or untranslatable_character then
    return 'base64';
end $$;

-- [[name, base64 | null], ...] as [[name, text | {"base64": ...} | null], ...].
create function wait_registry_headers(headers jsonb) returns jsonb
language sql stable strict parallel restricted
begin atomic
    select coalesce(jsonb_agg(jsonb_build_array(
        item -> 0,
        case
            when item ->> 1 is null then null
            when wait_registry_encoding(decode(item ->> 1, 'base64')) = 'base64'
                then jsonb_build_object('base64', item ->> 1)
            else to_jsonb(wait_registry_text(decode(item ->> 1, 'base64')))
        end) order by place), '[]'::jsonb)
    from jsonb_array_elements(headers) with ordinality as list (item, place);
end;

create view wait_readable as
select
    wait_expiration_uuid,
    original_topic,
    original_partition,
    original_offset,
    wait_registry_text(original_key) as original_key,
    wait_registry_encoding(original_key) as original_key_encoding,
    original_timestamp,
    original_timestamp_type,
    wait_registry_headers(original_headers) as original_headers,
    wait_expiration_time,
    wait_registry_text(body) as body,
    wait_registry_encoding(body) as body_encoding,
    consumer_group,
    instance,
    delivery,
    dead_letter_topic,
    expiry_policy,
    max_deliveries,
    idempotency_key,
    wait_topic,
    wait_partition,
    wait_offset,
    source_topic,
    source_partition,
    source_offset,
    traceparent,
    tracestate,
    created_at
from wait;

create view dead_letter_readable as
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
    created_at
from dead_letter;
