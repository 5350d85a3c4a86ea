-- Was a record done, as far as the tables can say?
-- What to do: Give topic, partition and offset, or a key. `waiting`: not done yet. `dead letter`: not done, unless it
-- says `finished late`; an `expired` record may have been done, so ask the called service. `consumed`: the tables have
-- no row of the record, but its group registered a later record of the partition; `at` is when the tables got that
-- later record, not when this one was done. So the record was done or discarded, or its dead letter is older than the
-- retention. The tables can't say which: a finished record leaves no row. `no trace`: the record was not consumed yet,
-- or was finished and no later record is in the tables; compare its offset with the group's committed offset (`waitreg
-- doctor processor`). All this is true only if the tables are fresh (`sink_freshness`).
-- Kind: one instance, one record
\if :{?topic} \else \set topic '' \endif
\if :{?partition} \else \set partition '' \endif
\if :{?offset} \else \set offset '' \endif
\if :{?key} \else \set key '' \endif

with asked (topic, partition, "offset", key) as (
    select
        cast(:'topic' as text),
        cast(nullif(:'partition', '') as int),
        cast(nullif(:'offset', '') as bigint),
        wait_registry_key_bytes(nullif(cast(:'key' as text), ''))
),

ids as (
    select wait_expiration_uuid
    from wait, asked
    where original_offset = asked.offset and original_partition = asked.partition and original_topic = asked.topic
    union
    select wait_expiration_uuid
    from dead_letter, asked
    where original_offset = asked.offset and original_partition = asked.partition and original_topic = asked.topic
    union
    (
        select wait_expiration_uuid
        from wait, asked
        where substring(original_key from 1 for 64) = substring(asked.key from 1 for 64) and original_key = asked.key
        limit 50
    )
    union
    (
        select wait_expiration_uuid
        from dead_letter, asked
        where substring(dead_letter.key from 1 for 64) = substring(asked.key from 1 for 64)
            and dead_letter.key = asked.key
        order by dead_letter_time desc
        limit 50
    )
),

-- The outcome of a registration is its last event. A late tombstone alone doesn't name the record.
latest as (
    select distinct on (wait_expiration_uuid)
        event,
        at,
        consumer_group,
        original_topic,
        original_partition,
        original_offset,
        wait_expiration_uuid as wait_id,
        detail
    from ids
    join record_event using (wait_expiration_uuid)
    where original_topic is not null
    order by wait_expiration_uuid, at desc
),

-- Values instead of a join with asked: the index is searched from this offset on.
later as (
    (
        select consumer_group, original_offset, created_at
        from wait
        where original_offset > cast(nullif(:'offset', '') as bigint)
            and original_offset <= cast(nullif(:'offset', '') as bigint) + 1000
            and original_partition = cast(nullif(:'partition', '') as int)
            and original_topic = cast(:'topic' as text)
        order by original_offset
        limit 10
    )
    union all
    (
        select consumer_group, original_offset, created_at
        from dead_letter
        where original_offset > cast(nullif(:'offset', '') as bigint)
            and original_offset <= cast(nullif(:'offset', '') as bigint) + 1000
            and original_partition = cast(nullif(:'partition', '') as int)
            and original_topic = cast(:'topic' as text)
        order by original_offset
        limit 10
    )
),

consumed as (
    select distinct on (later.consumer_group)
        'consumed' as event,
        later.created_at as at,
        later.consumer_group,
        asked.topic,
        asked.partition,
        asked.offset,
        cast(null as text) as wait_id,
        'this group registered offset ' || later.original_offset || ' of the partition' as detail
    from later, asked
    where not exists (select from latest where latest.consumer_group = later.consumer_group)
    order by later.consumer_group, later.original_offset
)

select event, at, consumer_group, original_topic, original_partition, original_offset, wait_id, detail from latest
union all
select event, at, consumer_group, topic, partition, "offset", wait_id, detail from consumed
union all
select 'no trace', null, null, nullif(topic, ''), partition, "offset", null, 'no row of the tables names it'
from asked
where not exists (select from latest) and not exists (select from consumed)
order by at, wait_id, consumer_group;
