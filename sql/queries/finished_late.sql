-- Which expired records were finished after all?
-- What to do: Don't redrive these records: `done` and `discarded` are finished, `retried` ones are in a retry topic. An
-- expired record that is not listed may have been done too: its process may have died after the call and before the
-- tombstone. Ask the called service by the idempotency key before you redrive it. Several rows mean that a process was
-- frozen for longer than the margin, for instance by a paused VM, a long garbage collection or a full disk: check that
-- host at `finished_at`. If this happens repeatedly, raise processor.margin_s. With a Kafka Connect sink the list is
-- always empty.
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
