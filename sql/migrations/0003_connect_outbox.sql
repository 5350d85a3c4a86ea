-- For a Kafka Connect source instead of our sweeper: append-only tables, which such a source reads without missing or
-- repeating a row, and the function that fills them.
-- docs/decisions/0011-an-outbox-for-connect-sources.md has the reasons.

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
-- that is the time up to which the tables are complete, and a partition without a position isn't due. With another sink
-- the tables may be settle_s behind, and only registrations from before standing_since are due: a restarted sink shows
-- settled registrations again until it reads their tombstones.
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
        and (
            progress.partition is not null
            or not exists (select from sink_progress as any_of where any_of.topic = wait_registry_due.topic)
        );
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
                    select from dead_letter as letter
                    where letter.wait_expiration_uuid = wait.wait_expiration_uuid
                        and letter.reason = 'expired'
                        and letter.wait_partition = wait.wait_partition
                        and letter.wait_offset = wait.wait_offset
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
                select from dead_letter as letter
                where letter.wait_expiration_uuid = wait.wait_expiration_uuid
                    and letter.reason = 'expired'
                    and letter.wait_partition = wait.wait_partition
                    and letter.wait_offset = wait.wait_offset
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
    select from dead_letter as letter
    where letter.wait_expiration_uuid = outbox.wait_expiration_uuid
        and letter.reason = 'expired'
        and letter.wait_partition = outbox.wait_partition
        and letter.wait_offset = outbox.wait_offset
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
