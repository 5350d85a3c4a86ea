-- Which dead letters came in, one by one, with their error and their record?
-- What to do: Read `error_message` and `error_stacktrace`; `body` is the record's value, up to 2,000 characters. A
-- record with reason `expired` may have been done: ask the called service before you redrive it. If `finished_late` is
-- yes, it was done. Narrow the list by group, topic and reason (failed, expired, blocked, unregistrable, malformed);
-- rows=100 lists more. `dead_letters_by_reason` counts them. The view `dead_letter_readable` has the whole record.
-- Kind: dead letters
\if :{?hours} \else \set hours 24 \endif
\if :{?rows} \else \set rows 10 \endif
\if :{?group} \else \set group '' \endif
\if :{?topic} \else \set topic '' \endif
\if :{?reason} \else \set reason '' \endif

select
    dead_letter_time as at,
    reason,
    error_class,
    error_message,
    case when finished_late then 'yes' else 'no' end as finished_late,
    consumer_group,
    original_topic,
    original_partition,
    original_offset,
    wait_registry_key(substring(key from 1 for 1024)) || case when octet_length(key) > 1024 then '…' else '' end as key,
    left(wait_registry_text(body), 2000) as body,
    error_stacktrace,
    wait_expiration_uuid as wait_id,
    topic as log_topic,
    partition as log_partition,
    "offset" as log_offset
from dead_letter
where dead_letter_time > now() - make_interval(hours => cast(:'hours' as int))
    and (:'group' = '' or consumer_group = :'group')
    and (:'topic' = '' or original_topic = :'topic')
    and (:'reason' = '' or reason = :'reason')
order by dead_letter_time desc, topic, partition, "offset"
limit cast(:'rows' as int);
