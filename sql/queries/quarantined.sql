-- What was quarantined lately, and why?
-- What to do: A program writes records to the wait topic that are not wait records. The error says what is wrong; key
-- and headers of the example (table quarantine) show where it comes from. If it is a foreign producer, revoke its
-- permission to write. If it is a service of ours, or Kafka Connect after an upgrade, it is a defect: keep the rows and
-- report it. A readable registration with the same ID is not affected. A record that exists only in this form is
-- processed by no service: publish its body again by hand (`record_by_wait_id` shows what else is known). A Kafka
-- Connect sink writes such records to its own dead letter topic instead.
-- Kind: the system
\if :{?days} \else \set days 7 \endif
\if :{?rows} \else \set rows 50 \endif

select
    topic,
    error,
    count(*) as records,
    min(record_time) as first_at,
    max(record_time) as last_at,
    (array_agg(partition order by record_time desc))[1] as latest_partition,
    (array_agg("offset" order by record_time desc))[1] as latest_offset,
    wait_registry_key((array_agg(substring(key from 1 for 64) order by record_time desc))[1]) as latest_key
from quarantine
where created_at > now() - make_interval(days => cast(:'days' as int))
group by topic, error
order by records desc, last_at desc
limit cast(:'rows' as int);
