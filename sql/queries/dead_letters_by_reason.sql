-- What was dead-lettered lately, and why? By reason, error class, group and topic.
-- What to do: `failed` with one error class: a bug or a bad downstream, read one error_message and mend it, then
-- redrive. `expired`: a process died with these in flight; those `finished_late` were done after all. `unregistrable`:
-- larger than wait.max_message_bytes. An empty reason: somebody else's records are in the dead letter topic.
\if :{?hours} \else \set hours 24 \endif

select
    reason,
    error_class,
    consumer_group,
    original_topic,
    count(*) as dead_letters,
    count(*) filter (where finished_late) as finished_late,
    min(dead_letter_time) as first_at,
    max(dead_letter_time) as last_at,
    (array_agg(error_message order by dead_letter_time desc))[1] as latest_message
from dead_letter
where dead_letter_time > now() - make_interval(hours => cast(:'hours' as int))
group by reason, error_class, consumer_group, original_topic
order by dead_letters desc, last_at desc;
