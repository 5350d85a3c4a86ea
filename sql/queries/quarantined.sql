-- What was quarantined lately, and why?
-- What to do: something writes to the wait topic what is no wait record; the error says what is wrong with it, key and
-- headers of the example (table quarantine) say whose it is. A foreign producer: take its rights away. Ours or the
-- Connect path after an upgrade: a defect, keep the rows. A readable registration of the same id stands as before; one
-- that came only so is in nobody's hands: deliver its body by hand (`record_by_wait_id` tells what else is known).
-- A Kafka Connect sink puts such records into its own dead letter topic, not here.
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
