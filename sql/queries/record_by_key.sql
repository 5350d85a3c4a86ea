-- What happened to the records of one key?
-- What to do: Give the key as text, or its bytes as \x and hexadecimal digits. Read the rows of each wait ID from the
-- top, as for `record_by_wait_id`. If the same event repeats with new offsets, the key is the cause: see `poison_keys`.
-- The query follows at most `rows` wait IDs. No row: the records of this key were finished in time, or are not consumed
-- yet, or are older than the retention, or the tables are late (`sink_freshness`), or the key is wrong. Records that
-- another program wrote to a dead letter topic have no wait ID and are not found.
-- Kind: one instance, one record
\if :{?rows} \else \set rows 50 \endif

with asked (key, header) as (
    select
        bytes,
        jsonb_build_array(jsonb_build_array('ORIGINAL_KEY', replace(encode(bytes, 'base64'), E'\n', '')))
    from wait_registry_key_bytes(cast(:'key' as text)) as bytes
),

ids as (
    (
        select wait_expiration_uuid
        from wait, asked
        where substring(original_key from 1 for 64) = substring(asked.key from 1 for 64) and original_key = asked.key
        limit cast(:'rows' as int)
    )
    union
    (
        select wait_expiration_uuid
        from dead_letter, asked
        where substring(dead_letter.key from 1 for 64) = substring(asked.key from 1 for 64)
            and dead_letter.key = asked.key
        order by dead_letter_time desc
        limit cast(:'rows' as int)
    )
    union
    (
        select wait_registry_text(substring(quarantine.key from 1 for 36))
        from quarantine, asked
        where headers @> asked.header
        limit cast(:'rows' as int)
    )
)

select
    at,
    event,
    ids.wait_expiration_uuid as wait_id,
    original_topic,
    original_partition,
    original_offset,
    consumer_group,
    instance,
    delivery,
    log_topic,
    log_partition,
    log_offset,
    detail
from ids
-- `offset 0` makes each look-up a probe of an index.
cross join lateral (
    select * from record_event where record_event.wait_expiration_uuid = ids.wait_expiration_uuid offset 0
) as found
order by at, log_topic, log_offset;
