-- Which keys are dead-lettered again and again?
-- What to do: One key with one error class: the handler fails for this customer or object. Fix that before you
-- redrive; the rest of the topic is fine. If `waiting` is above 0, more records of the key are in flight. Many keys
-- with one error class: the keys are not the cause, see `dead_letters_by_reason`. `record_by_key` lists the events of a
-- key. A key that is not text is shown as \x and hexadecimal digits, and is given in that form.
-- Kind: dead letters
\if :{?times} \else \set times 3 \endif
\if :{?days} \else \set days 7 \endif
\if :{?rows} \else \set rows 20 \endif

with repeated as (
    select
        key,
        consumer_group,
        original_topic,
        count(*) as dead_letters,
        min(dead_letter_time) as first_at,
        max(dead_letter_time) as last_at
    from dead_letter
    where dead_letter_time > now() - make_interval(days => cast(:'days' as int)) and key is not null
    group by key, consumer_group, original_topic
    having count(*) >= cast(:'times' as int)
    order by dead_letters desc, last_at desc
    limit cast(:'rows' as int)
)

select
    wait_registry_key(repeated.key) as key,
    repeated.consumer_group,
    repeated.original_topic,
    repeated.dead_letters,
    repeated.first_at,
    repeated.last_at,
    latest.reason as latest_reason,
    latest.error_class as latest_error_class,
    latest.error_message as latest_message,
    (
        select count(*)
        from wait
        where substring(wait.original_key from 1 for 64) = substring(repeated.key from 1 for 64)
            and wait.original_key = repeated.key
            and wait.consumer_group is not distinct from repeated.consumer_group
            and wait.original_topic = repeated.original_topic
    ) as waiting
from repeated
left join lateral (
    select reason, error_class, error_message
    from dead_letter
    where dead_letter.dead_letter_time = repeated.last_at
        and dead_letter.key = repeated.key
        and dead_letter.consumer_group is not distinct from repeated.consumer_group
        and dead_letter.original_topic is not distinct from repeated.original_topic
    limit 1
) as latest on true
order by repeated.dead_letters desc, repeated.last_at desc;
