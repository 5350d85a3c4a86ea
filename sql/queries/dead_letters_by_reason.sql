-- What was dead-lettered lately, and why?
-- What to do: `failed` with one error class: a bug or a bad downstream, read one error_message and mend it, then
-- redeliver. `expired`: a process died with these in flight. Those `finished_late` were finished after all; the others
-- may have been done (killed after the call and before the tombstone): ask the downstream by wait id before they are
-- redelivered. `unregistrable`: larger than wait.max_message_bytes. An empty reason: somebody else's records are in the
-- dead letter topic. A Kafka Connect sink marks nothing as `finished_late`.
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
    from dead_letter as letter
    where letter.dead_letter_time = counted.last_at
        and letter.reason is not distinct from counted.reason
        and letter.error_class is not distinct from counted.error_class
        and letter.consumer_group is not distinct from counted.consumer_group
        and letter.original_topic is not distinct from counted.original_topic
    limit 1
) as latest on true
order by counted.dead_letters desc, counted.last_at desc, counted.reason, counted.error_class;
