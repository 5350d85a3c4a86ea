-- What was dead-lettered lately, and why?
-- What to do: If one error class dominates `failed`, the cause is a bug or the downstream: read one error_message
-- (`dead_letters`), fix the cause, then redrive. `expired` means that a process died with these records in flight.
-- Those in `finished_late` were finished later. The others may have been done too: ask the called service by the
-- idempotency key before you redrive them. `unregistrable` records are larger than wait.max_message_bytes. If the
-- reason is empty, another program wrote to the dead letter topic. With a Kafka Connect sink `finished_late` is always
-- 0.
-- Kind: dead letters
\if :{?hours} \else \set hours 24 \endif

with counted as (
    select
        reason,
        error_class,
        consumer_group,
        original_topic,
        count(*) as dead_letters,
        count(*) filter (where finished_late) as finished_late,
        min(dead_letter_time) as first_at,
        max(dead_letter_time) as last_at
    from dead_letter
    where dead_letter_time > now() - make_interval(hours => cast(:'hours' as int))
    group by reason, error_class, consumer_group, original_topic
)

select
    counted.*,
    latest.error_message as latest_message
from counted
left join lateral (
    select error_message
    from dead_letter
    where dead_letter.dead_letter_time = counted.last_at
        and dead_letter.reason is not distinct from counted.reason
        and dead_letter.error_class is not distinct from counted.error_class
        and dead_letter.consumer_group is not distinct from counted.consumer_group
        and dead_letter.original_topic is not distinct from counted.original_topic
    limit 1
) as latest on true
order by counted.dead_letters desc, counted.last_at desc, counted.reason, counted.error_class;
