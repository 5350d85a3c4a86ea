-- What is or was in flight on an instance, and where is it now?
-- What to do: Give the start of its name; the host's name is enough. `waiting_by_instance` and the dead letters have
-- the names. `waiting` is exported after `expires_at`. For `overdue` see the query `overdue`. `exported` has been in
-- the dead letter topic since `exported_at`, and may have been done: its process may have died after the call and
-- before the tombstone. Ask the called service by the idempotency key before you redrive it. `exported, finished late`
-- was finished: don't redrive it. A redelivered record is listed under the instance that has it now. A record that
-- another instance finished is not listed.
-- Kind: one instance, one record
\if :{?hours} \else \set hours 24 \endif
\if :{?rows} \else \set rows 100 \endif

with standing as (
    select
        case when wait_expiration_time < now() then 'overdue' else 'waiting' end as state,
        wait_expiration_time as expires_at,
        cast(null as timestamptz) as exported_at,
        wait_expiration_uuid as wait_id,
        original_topic,
        original_partition,
        original_offset,
        original_key as key,
        consumer_group,
        instance,
        delivery
    from wait
    where starts_with(instance, cast(:'instance' as text))
    order by wait_expiration_time
    limit cast(:'rows' as int)
),

exported as (
    select
        case when finished_late then 'exported, finished late' else 'exported' end as state,
        cast(null as timestamptz) as expires_at,
        dead_letter_time as exported_at,
        wait_expiration_uuid as wait_id,
        original_topic,
        original_partition,
        original_offset,
        key,
        consumer_group,
        instance,
        delivery
    from dead_letter
    where dead_letter_time > now() - make_interval(hours => cast(:'hours' as int))
        and reason = 'expired'
        and starts_with(instance, cast(:'instance' as text))
    order by dead_letter_time desc
    limit cast(:'rows' as int)
)

select
    state,
    expires_at,
    exported_at,
    wait_id,
    original_topic,
    original_partition,
    original_offset,
    wait_registry_key(key) as key,
    consumer_group,
    delivery,
    instance
from (
    select * from standing
    union all
    select * from exported
) as found
order by state desc, coalesce(expires_at, exported_at), wait_id;
