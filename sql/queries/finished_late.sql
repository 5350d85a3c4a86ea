-- Which expired records were finished after all?
-- What to do: don't redeliver these: `done` and `discarded` are finished, `dead_lettered` ones have a second dead
-- letter with the error. An expired one that isn't listed may have been done too (killed after the call and before the
-- tombstone): ask the downstream by wait id before it is redelivered. More than a handful: a process was frozen (a
-- paused VM, a long GC, a full disk) for longer than the margin and went on; look at that host at `finished_at`. Again
-- and again: raise processor.margin_s. A Kafka Connect sink marks nothing: beside it this is always empty.
-- Kind: dead letters
\if :{?hours} \else \set hours 24 \endif
\if :{?rows} \else \set rows 100 \endif

select
    dead_letter_time as exported_at,
    finished_time as finished_at,
    date_trunc('second', finished_time - dead_letter_time) as later_by,
    finished_outcome as outcome,
    wait_expiration_uuid as wait_id,
    original_topic,
    original_partition,
    original_offset,
    wait_registry_key(key) as key,
    consumer_group,
    instance
from dead_letter
where dead_letter_time > now() - make_interval(hours => cast(:'hours' as int))
    and finished_late
order by dead_letter_time desc, wait_expiration_uuid
limit cast(:'rows' as int);
