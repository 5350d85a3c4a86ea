-- What happened in each delivery of one record?
-- What to do: Give `id` (the idempotency key, or the wait ID of any delivery), or topic, partition and offset of the
-- first delivery. Each group has its own key, and each edit another one: ask the called service by it. `handed on`: the
-- delivery failed or expired, and the record came again as the next one. The tables keep no time and no error of it;
-- the processor's log has them under the same key. `waiting`: the delivery isn't finished. `dead letter` and
-- `redriven`: the record went to `next_place`. A finished delivery leaves no row, and neither does a record that waits
-- in a retry topic. The deliveries before it show only if another one has a row. No row: `record` says what the tables
-- can say.
-- Kind: one instance, one record
\if :{?id} \else \set id '' \endif
\if :{?topic} \else \set topic '' \endif
\if :{?partition} \else \set partition '' \endif
\if :{?offset} \else \set offset '' \endif

with asked (id, topic, partition, "offset") as (
    select
        lower(trim(cast(:'id' as text))),
        cast(:'topic' as text),
        cast(nullif(:'partition', '') as int),
        cast(nullif(:'offset', '') as bigint)
),

keys as (
    select
        coalesce(
            (select idempotency_key from wait where wait_expiration_uuid = asked.id),
            (select idempotency_key from dead_letter where wait_expiration_uuid = asked.id limit 1),
            asked.id
        ) as idempotency_key
    from asked
    union
    select idempotency_key
    from wait, asked
    where original_offset = asked.offset and original_partition = asked.partition and original_topic = asked.topic
    union
    select idempotency_key
    from dead_letter, asked
    where original_offset = asked.offset and original_partition = asked.partition and original_topic = asked.topic
),

-- The key is the wait ID of the first delivery, and the indexes on it have later ones. `offset 0` makes each look-up a
-- probe of an index.
ids as (
    select idempotency_key, idempotency_key as wait_expiration_uuid from keys
    union
    select keys.idempotency_key, later.wait_expiration_uuid
    from keys
    cross join lateral (
        select wait_expiration_uuid
        from wait
        where wait.idempotency_key = keys.idempotency_key and wait.idempotency_key <> wait.wait_expiration_uuid
        offset 0
    ) as later
    union
    select keys.idempotency_key, later.wait_expiration_uuid
    from keys
    cross join lateral (
        select wait_expiration_uuid
        from dead_letter
        where dead_letter.idempotency_key = keys.idempotency_key
            and dead_letter.idempotency_key <> dead_letter.wait_expiration_uuid
        offset 0
    ) as later
),

events as (
    select
        ids.idempotency_key,
        ids.wait_expiration_uuid,
        coalesce(
            found.delivery,
            max(found.delivery) over (partition by ids.wait_expiration_uuid),
            case when ids.wait_expiration_uuid = ids.idempotency_key then 1 end
        ) as delivery,
        found.at,
        found.event,
        -- A mark doesn't say where the delivery was consumed, but its dead letter does.
        max(
            case
                when found.source_topic is not null
                    then format('%s:%s:%s', found.source_topic, found.source_partition, found.source_offset)
            end
        ) over (partition by ids.wait_expiration_uuid) as source,
        case
            when found.original_topic is not null
                then format('%s:%s:%s', found.original_topic, found.original_partition, found.original_offset)
        end as original,
        found.original_topic,
        found.original_partition,
        found.original_offset,
        case
            when found.next_topic is not null
                then format('%s:%s:%s', found.next_topic, found.next_partition, found.next_offset)
        end as next_place,
        found.consumer_group,
        found.instance,
        found.detail
    from ids
    cross join lateral (
        select * from record_event where record_event.wait_expiration_uuid = ids.wait_expiration_uuid offset 0
    ) as found
),

-- A later delivery proves the earlier ones, which leave no rows.
earlier as (
    select
        latest.idempotency_key,
        case when number = 1 then latest.idempotency_key end as wait_expiration_uuid,
        number as delivery,
        latest.original,
        following.source as next_place,
        latest.consumer_group
    from (
        select distinct on (idempotency_key) *
        from events
        where consumer_group is not null
        order by idempotency_key, delivery desc
    ) as latest
    -- The first delivery with this key: an edited record has another key than the one before it.
    cross join lateral (
        select coalesce(max(mark.delivery), 1) as delivery
        from dead_letter_mark as mark
        where
            mark.original_offset = latest.original_offset
            and mark.original_partition = latest.original_partition
            and mark.original_topic = latest.original_topic
            and mark.consumer_group = latest.consumer_group
            and mark.edited
            and mark.delivery <= latest.delivery
    ) as first
    -- A foreign producer may have written any number.
    cross join generate_series(greatest(first.delivery, latest.delivery - 1000), latest.delivery - 1) as number
    left join (select distinct idempotency_key, delivery, source from events) as following
        on following.idempotency_key = latest.idempotency_key
            and following.delivery = number + 1 and following.source is not null
    where not exists (
        select from events where events.idempotency_key = latest.idempotency_key and events.delivery = number
    )
)

select
    consumer_group,
    delivery,
    at,
    event,
    case when delivery = 1 then original else source end as place,
    next_place,
    wait_expiration_uuid as wait_id,
    idempotency_key,
    instance,
    detail
from events
union all
select
    consumer_group, delivery, null, 'handed on', case when delivery = 1 then original end, next_place,
    wait_expiration_uuid, idempotency_key, null, null
from earlier
order by idempotency_key, delivery, at;
