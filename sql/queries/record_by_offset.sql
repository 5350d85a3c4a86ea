-- What happened to one record, by the topic, partition and offset it came from?
-- What to do: Each group that reads the topic has its own wait ID; read its rows as for `record_by_wait_id`. For a
-- redelivered record give the coordinates of its first delivery. No row: it was finished in time, or is not consumed
-- yet (compare the group's committed offset), or is older than the retention, or the tables are late
-- (`sink_freshness`). `record` answers whether it was done.
-- Kind: one instance, one record
with asked (topic, partition, "offset", headers) as (
    select
        cast(:'topic' as text),
        cast(:'partition' as int),
        cast(:'offset' as bigint),
        (
            select jsonb_agg(jsonb_build_array(
                name, replace(encode(convert_to(value, 'UTF8'), 'base64'), E'\n', '')
            ))
            from (
                values
                ('ORIGINAL_TOPIC', cast(:'topic' as text)),
                ('ORIGINAL_PARTITION', cast(cast(:'partition' as int) as text)),
                ('ORIGINAL_OFFSET', cast(cast(:'offset' as bigint) as text))
            ) as header (name, value)
        )
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
    select wait_registry_text(substring(key from 1 for 36))
    from quarantine, asked
    where quarantine.headers @> asked.headers
)

select
    at,
    event,
    wait_expiration_uuid as wait_id,
    consumer_group,
    instance,
    delivery,
    log_topic,
    log_partition,
    log_offset,
    detail
from ids
join record_event using (wait_expiration_uuid)
order by at, log_topic, log_offset;
