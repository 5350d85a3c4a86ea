-- The schema of the wait registry, for Postgres 14 or newer: migration 0001. Once it is released, it never changes again.
-- Run it with search_path set to the target schema (setting postgres.schema); nothing here names a schema.

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
    redeliver_to text,
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

-- For incident queries. Keys may be too long for a B-tree, so their beginning is indexed, and a query compares both.
create index wait_place on wait (original_offset, original_partition);
create index wait_key on wait (substring(original_key from 1 for 64));
-- Later deliveries; the first one has the key as its wait ID.
create index wait_idempotency_key on wait (idempotency_key) where idempotency_key <> wait_expiration_uuid;

-- Position, idempotence guard and fence of the sink; advanced only by compare-and-set on next_offset.
create table sink_progress (
    topic text not null,
    topic_id text not null,
    partition int not null,
    next_offset bigint not null,
    position_time timestamptz not null,
    seen_at timestamptz not null,
    -- The end of the topic when the initial load began; until it is reached, wait shows registrations that are settled.
    read_until bigint not null default 0,
    -- Which operations topic of these tables it is, counted from 1: only the last one is read. Null for all other topics.
    operations_number int,
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
    -- What an operator did last: open, redriven or archived.
    state text not null default 'open',
    state_at timestamptz,
    state_by text,
    job text,
    primary key (topic, partition, "offset")
);

create index dead_letter_wait on dead_letter (wait_expiration_uuid);
create index dead_letter_unfinished on dead_letter (wait_expiration_uuid)
where reason = 'expired' and finished_outcome is null;
create index dead_letter_age on dead_letter (created_at);
create index dead_letter_time on dead_letter (dead_letter_time);
-- A record of another client may name a group that is too long for a B-tree.
create index dead_letter_open on dead_letter (left(consumer_group, 250), dead_letter_time) where state = 'open';
create index dead_letter_open_error on dead_letter (left(error_class, 250), dead_letter_time) where state = 'open';
-- For the counted metrics of dead letters (sql/counted_metrics.sql). Longer names, which a B-tree may not take, no
-- processor writes.
create index dead_letter_backlog on dead_letter (consumer_group, topic, reason, dead_letter_time)
where state = 'open' and coalesce(length(consumer_group), 0) < 250;
create index dead_letter_error on dead_letter (consumer_group, topic, error_class, dead_letter_time)
where length(consumer_group) < 250 and length(error_class) <= 256;
create index dead_letter_place on dead_letter (original_offset, original_partition);
create index dead_letter_key on dead_letter (substring(key from 1 for 64));
create index dead_letter_idempotency_key on dead_letter (idempotency_key)
where idempotency_key <> wait_expiration_uuid;

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
    changed_reason text not null default '',
    canary bigint,
    -- The offset of the operations topic from which records count for the automatic pause: where it was resumed last.
    counted_from bigint not null default 0,
    -- The edited record that it sends, key, value and headers in base64.
    replacement jsonb,
    -- Whether it begins only when another person has approved it, and who has.
    approval boolean not null default false,
    approved_by text
);

create index operation_age on operation (changed_at);
create index operation_unfinished on operation (changed_at) where state in ('awaiting', 'running', 'paused');

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
    marked_by text not null,
    delivery int,
    edited boolean not null default false,
    dead_letters text[] not null default '{}',
    original_timestamp_ms bigint
);

-- Whether a mark is of a dead letter: its `dead_letters` are those that its delivery had then, as
-- topic@ID:partition:offset. A later one of the same delivery is another failure, also at the same place of a topic that
-- was recreated. Dead letters of a deleted topic are kept as those of `topic@ID`; the ID of another topic is the one in
-- sink_progress. Without an ID, in the mark or in sink_progress (a Kafka Connect sink), the name decides.
create function wait_registry_covers(
    dead_letters text[], topic text, topic_id text, partition int, "offset" bigint
) returns boolean
language sql stable parallel safe
return split_part(topic, '@', 1) || ':' || partition::text || ':' || "offset"::text = any(dead_letters)
or case
    when strpos(topic, '@') > 0 then topic || ':' || partition::text || ':' || "offset"::text = any(dead_letters)
    when topic_id is not null
        then topic || '@' || translate(topic_id, '+/', '-_') || ':' || partition::text || ':' || "offset"::text
            = any(dead_letters)
    else
        ' ' || array_to_string(dead_letters, ' ') || ' '
        ~ (' ' || replace(topic, '.', '[.]') || '@[^ :]*:' || partition::text || ':' || "offset"::text || ' ')
end;

create index dead_letter_mark_wait on dead_letter_mark (wait_expiration_uuid, "offset");
create index dead_letter_mark_place on dead_letter_mark (original_offset, original_partition);
create index dead_letter_mark_job on dead_letter_mark (job, "offset");
create index dead_letter_mark_age on dead_letter_mark (marked_at);

-- One row per change of a job's state or rate, per approval, per reveal of hidden contents, and two per deletion of records;
-- never updated. The offset is that of the operations topic; `authenticated` is null if the record doesn't say it.
create table operator_event (
    "offset" bigint primary key,
    event text not null,
    job text,
    consumer_group text,
    done_at timestamptz not null,
    done_by text not null,
    authenticated boolean,
    detail text not null,
    dead_letter_topic text,
    dead_letter_partition int,
    dead_letter_offset bigint
);

create index operator_event_job on operator_event (job, "offset");
create index operator_event_age on operator_event (done_at);

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

-- One row per sweep, even without due rows; the newest row shows that the sweeper is alive. At the default interval of
-- 30 s that is 86,000 small rows per month and sweeper; rows older than the retention are purged. Only the sweeper
-- writes it.
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

-- Quarantined records are looked up by wait ID and by the headers of their origin.
create index quarantine_wait on quarantine (wait_registry_text(substring(key from 1 for 36)));
create index quarantine_headers on quarantine using gin (headers jsonb_path_ops);

-- The encoding that wait_registry_text uses for these bytes: 'utf-8' or 'base64'.
create function wait_registry_encoding(bytes bytea) returns text
language plpgsql immutable strict parallel restricted as $$
begin
    perform convert_from(bytes, 'UTF8');
    return 'utf-8';
exception when character_not_in_repertoire or untranslatable_character then
    return 'base64';
end $$;

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
    redeliver_to,
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
    created_at,
    state,
    state_at,
    state_by,
    job
from dead_letter;

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
    || coalesce(', then ' || expiry_policy, '') as detail,
    null::text as next_topic,
    null::int as next_partition,
    null::bigint as next_offset
from wait
union all
select
    wait_expiration_uuid,
    dead_letter_time,
    'dead letter: ' || coalesce(reason, 'not ours')
    || case
        when finished_late then ', finished late: ' || coalesce(finished_outcome, 'unknown')
        when finished_outcome is not null then ', the work failed too'
        else ''
    end,
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
    concat_ws(': ', error_class, error_message),
    topic,
    partition,
    "offset"
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
    'came after another outcome, or after the expiry',
    null,
    null,
    null
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
    null,
    null,
    null,
    consumer_group,
    null,
    null,
    null,
    null,
    null,
    'by ' || marked_by || ', job ' || job || coalesce(', next wait ID ' || next_wait_id, ''),
    target_topic,
    target_partition,
    target_offset
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
    error,
    null,
    null,
    null
from quarantine;

-- For a Kafka Connect source instead of our sweeper: append-only tables, which such a source reads without missing or
-- repeating a row, and the function that fills them.

-- One row per exported registration. Its place in the wait topic and its wait ID are unique together; a recreated topic
-- counts offsets from 0 again, so the place alone isn't enough.
create table expired_outbox (
    id bigint generated always as identity primary key,
    wait_expiration_uuid text not null,
    original_topic text not null,
    original_partition int,
    original_offset bigint,
    original_key bytea,
    original_timestamp_ms bigint,
    original_timestamp_type text,
    original_headers jsonb,
    wait_expiration_time timestamptz not null,
    body bytea,
    consumer_group text,
    instance text,
    delivery int,
    dead_letter_topic text,
    idempotency_key text,
    wait_topic text not null,
    wait_partition int not null,
    wait_offset bigint not null,
    source_topic text,
    source_partition int,
    source_offset bigint,
    created_at timestamptz not null default now(),
    unique (wait_topic, wait_partition, wait_offset, wait_expiration_uuid)
);

create index expired_outbox_age on expired_outbox (created_at);

-- One row per registration whose `expired` dead letter is in its topic, so that its tombstone may follow.
create table expired_tombstone (
    id bigint generated always as identity primary key,
    wait_expiration_uuid text not null,
    wait_topic text not null,
    wait_partition int not null,
    wait_offset bigint not null,
    created_at timestamptz not null default now(),
    unique (wait_topic, wait_partition, wait_offset, wait_expiration_uuid)
);

create index expired_tombstone_age on expired_tombstone (created_at);

-- The due registrations, one row per partition of the wait topic: those that expire before due_before. With our sink
-- that is the time up to which the tables are complete. A partition without a position isn't due, and none is during
-- the initial load of a topic, since tombstones or dead letters may be unread. With another sink the tables may be
-- settle_s behind, and only registrations from before standing_since are due: a restarted sink shows settled
-- registrations again until it reads their tombstones.
create function wait_registry_due(topic text, skew_s double precision, settle_s double precision)
returns table (wait_partition int, due_before timestamptz, standing_since timestamptz)
language sql stable parallel safe
begin atomic
    with recursive found (partition) as (
        select min(wait.wait_partition) from wait where wait.wait_topic = wait_registry_due.topic
        union all
        select (
            select min(wait.wait_partition)
            from wait
            where wait.wait_topic = wait_registry_due.topic and wait.wait_partition > found.partition
        )
        from found
        where found.partition is not null
    )
    select
        found.partition,
        case
            when progress.partition is null then now() - make_interval(secs => wait_registry_due.settle_s)
            else least(now(), progress.position_time)
        end - make_interval(secs => wait_registry_due.skew_s),
        case
            when progress.partition is null then now() - make_interval(secs => wait_registry_due.settle_s)
            else 'infinity'
        end
    from found
    left join sink_progress as progress
        on progress.topic = wait_registry_due.topic and progress.partition = found.partition
    where found.partition is not null
        and case
            when progress.partition is null
                then not exists (select from sink_progress as any_of where any_of.topic = wait_registry_due.topic)
            else not exists (select from sink_progress as reading where reading.next_offset < reading.read_until)
        end;
end;

-- Whether a text is a valid topic name.
create function wait_registry_is_topic(name text) returns boolean
language sql immutable parallel safe
return wait_registry_is_topic.name ~ '^[a-zA-Z0-9._-]{1,249}$' and wait_registry_is_topic.name not in ('.', '..');

-- The dead letter topic of a registration that names none. Braces in a topic's own name are not placeholders.
create function wait_registry_dead_letter_topic(template text, topic text, consumer_group text) returns text
language sql immutable parallel safe
return replace(
    replace(
        wait_registry_dead_letter_topic.template,
        '{topic}',
        translate(wait_registry_dead_letter_topic.topic, '{}', '  ')
    ),
    '{group}',
    coalesce(wait_registry_dead_letter_topic.consumer_group, '')
);

-- Inserts due registrations into expired_outbox and returns their number; inserts the tombstones of registrations with
-- a dead letter into expired_tombstone; and deletes rows that were finished a week ago. At most max_rows of each, and
-- due rows up to max_bytes. The lock is held until the end of the transaction, so that ids become visible in order and
-- a source that reads on from the last id misses none. A caller that waits too long for the lock gets an error and
-- retries. `offset 0` keeps each subquery an index probe; as joins they would read whole tables every few seconds.
create function fill_expired_outbox(
    topic text,
    skew_s double precision,
    max_rows int,
    settle_s double precision,
    default_topic text,
    max_bytes bigint
) returns bigint
language plpgsql set search_path from current set lock_timeout = '30s' as $$
declare
    filled bigint;
begin
    perform pg_advisory_xact_lock(
        hashtextextended('waitreg.expired_outbox ' || current_schema() || ' ' || fill_expired_outbox.topic, 0)
    );

    with found as (
        select due.wait_expiration_uuid, due.wait_expiration_time, due.bytes
        from wait_registry_due(
            fill_expired_outbox.topic, fill_expired_outbox.skew_s, fill_expired_outbox.settle_s
        ) as partition
        cross join lateral (
            select
                wait.wait_expiration_uuid,
                wait.wait_expiration_time,
                -- The stored size, which is known without reading the values.
                coalesce(octet_length(wait.body), 0) + coalesce(pg_column_size(wait.original_headers), 0) as bytes
            from wait
            where wait.wait_topic = fill_expired_outbox.topic
                and wait.wait_partition = partition.wait_partition
                and wait.wait_expiration_time < partition.due_before
                and wait.created_at < partition.standing_since
                -- A header name with NUL or half a surrogate pair, or an invalid dead letter topic: to our sweeper such
                -- a row is unsendable, and a source would stop at it permanently.
                and not coalesce(jsonb_path_exists(wait.original_headers, '$[*][0] ? (@.type() == "object")'), false)
                and wait_registry_is_topic(
                    coalesce(
                        nullif(wait.dead_letter_topic, ''),
                        wait_registry_dead_letter_topic(
                            fill_expired_outbox.default_topic, wait.original_topic, wait.consumer_group
                        )
                    )
                )
                and not exists (
                    select from expired_outbox as known
                    where known.wait_topic = wait.wait_topic
                        and known.wait_partition = wait.wait_partition
                        and known.wait_offset = wait.wait_offset
                        and known.wait_expiration_uuid = wait.wait_expiration_uuid
                    offset 0
                )
                -- Known from the topic, whatever was restored here.
                and not exists (
                    select from dead_letter
                    where dead_letter.wait_expiration_uuid = wait.wait_expiration_uuid
                        and dead_letter.reason = 'expired'
                        and dead_letter.wait_partition = wait.wait_partition
                        and dead_letter.wait_offset = wait.wait_offset
                    offset 0
                )
            order by wait.wait_expiration_time
            limit fill_expired_outbox.max_rows
        ) as due
        order by due.wait_expiration_time, due.wait_expiration_uuid
        limit fill_expired_outbox.max_rows
    ),

    summed as (
        select
            found.wait_expiration_uuid,
            found.wait_expiration_time,
            sum(found.bytes) over (order by found.wait_expiration_time, found.wait_expiration_uuid) - found.bytes
                as bytes_before
        from found
    ),

    chosen as materialized (
        select summed.wait_expiration_uuid, summed.wait_expiration_time
        from summed
        where summed.bytes_before < fill_expired_outbox.max_bytes
    )

    insert into expired_outbox (
        wait_expiration_uuid, original_topic, original_partition, original_offset, original_key, original_timestamp_ms,
        original_timestamp_type, original_headers, wait_expiration_time, body, consumer_group, instance, delivery,
        dead_letter_topic, idempotency_key, wait_topic, wait_partition, wait_offset, source_topic, source_partition,
        source_offset
    )
    select
        wait.wait_expiration_uuid, wait.original_topic, wait.original_partition, wait.original_offset,
        wait.original_key, wait.original_timestamp_ms, wait.original_timestamp_type, wait.original_headers,
        wait.wait_expiration_time, wait.body, wait.consumer_group, wait.instance, wait.delivery,
        nullif(wait.dead_letter_topic, ''), wait.idempotency_key, wait.wait_topic, wait.wait_partition,
        wait.wait_offset, wait.source_topic, wait.source_partition, wait.source_offset
    from chosen
    cross join lateral (
        select * from wait where wait.wait_expiration_uuid = chosen.wait_expiration_uuid offset 0
    ) as wait
    order by chosen.wait_expiration_time, chosen.wait_expiration_uuid
    on conflict do nothing;
    get diagnostics filled = row_count;

    insert into expired_tombstone (wait_expiration_uuid, wait_topic, wait_partition, wait_offset)
    select due.wait_expiration_uuid, due.wait_topic, due.wait_partition, due.wait_offset
    from wait_registry_due(fill_expired_outbox.topic, fill_expired_outbox.skew_s, 0) as partition
    cross join lateral (
        select wait.wait_expiration_uuid, wait.wait_topic, wait.wait_partition, wait.wait_offset
        from wait
        where wait.wait_topic = fill_expired_outbox.topic
            and wait.wait_partition = partition.wait_partition
            and wait.wait_expiration_time < partition.due_before
            and not exists (
                select from expired_tombstone as known
                where known.wait_topic = wait.wait_topic
                    and known.wait_partition = wait.wait_partition
                    and known.wait_offset = wait.wait_offset
                    and known.wait_expiration_uuid = wait.wait_expiration_uuid
                offset 0
            )
            and exists (
                select from dead_letter
                where dead_letter.wait_expiration_uuid = wait.wait_expiration_uuid
                    and dead_letter.reason = 'expired'
                    and dead_letter.wait_partition = wait.wait_partition
                    and dead_letter.wait_offset = wait.wait_offset
                offset 0
            )
        order by wait.wait_expiration_time
        limit fill_expired_outbox.max_rows
    ) as due
    limit fill_expired_outbox.max_rows
    on conflict do nothing;

    -- A registration that is still in wait isn't finished; without its row here it would be exported again.
    delete from expired_outbox where id = any(array(
        select old.id
        from expired_outbox as old
        where old.created_at < now() - interval '7 days'
            and not exists (
                select from wait
                where wait.wait_expiration_uuid = old.wait_expiration_uuid
                    and wait.wait_topic = old.wait_topic
                    and wait.wait_partition = old.wait_partition
                    and wait.wait_offset = old.wait_offset
                offset 0
            )
        order by old.created_at
        limit fill_expired_outbox.max_rows
    ));
    delete from expired_tombstone where id = any(array(
        select old.id
        from expired_tombstone as old
        where old.created_at < now() - interval '7 days'
            and not exists (
                select from wait
                where wait.wait_expiration_uuid = old.wait_expiration_uuid
                    and wait.wait_topic = old.wait_topic
                    and wait.wait_partition = old.wait_partition
                    and wait.wait_offset = old.wait_offset
                offset 0
            )
        order by old.created_at
        limit fill_expired_outbox.max_rows
    ));
    return filled;
end $$;

-- Rows that a source must still send: the registration is open, and it has no dead letter in the tables. A source that
-- has lost its position in expired_outbox starts with these.
create view expired_outbox_open as
select outbox.*
from expired_outbox as outbox
where exists (
    select from wait
    where wait.wait_expiration_uuid = outbox.wait_expiration_uuid
        and wait.wait_topic = outbox.wait_topic
        and wait.wait_partition = outbox.wait_partition
        and wait.wait_offset = outbox.wait_offset
    offset 0
)
and not exists (
    select from dead_letter
    where dead_letter.wait_expiration_uuid = outbox.wait_expiration_uuid
        and dead_letter.reason = 'expired'
        and dead_letter.wait_partition = outbox.wait_partition
        and dead_letter.wait_offset = outbox.wait_offset
    offset 0
);

-- Tombstones that a source must still send: the registration is still open.
create view expired_tombstone_open as
select tombstone.*
from expired_tombstone as tombstone
where exists (
    select from wait
    where wait.wait_expiration_uuid = tombstone.wait_expiration_uuid
        and wait.wait_topic = tombstone.wait_topic
        and wait.wait_partition = tombstone.wait_partition
        and wait.wait_offset = tombstone.wait_offset
    offset 0
);
