-- The table for the two published configurations, in place of sql/schema.sql: with the number that their source counts
-- by, and without a value for partition and offset, which their converter can't see. Sink, sweeper and `waitreg db` of
-- this project don't work on it.
create table wait (
    id bigint generated always as identity primary key,
    wait_expiration_uuid text not null unique,
    original_topic text not null,
    original_partition int,
    original_offset bigint,
    original_key bytea,
    original_timestamp timestamptz,
    original_timestamp_ms bigint,
    original_timestamp_type text,
    original_headers jsonb,
    wait_expiration_time timestamptz not null,
    body bytea,
    consumer_group text,
    instance text,
    delivery int,
    dead_letter_topic text,
    expiry_policy text,
    max_deliveries int,
    redeliver_to text,
    wait_topic text not null,
    wait_partition int,
    wait_offset bigint,
    source_topic text,
    source_partition int,
    source_offset bigint,
    traceparent text,
    tracestate text,
    created_at timestamptz not null default now()
);
