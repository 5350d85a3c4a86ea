-- What expires within the next minutes, and what becomes of it then?
-- What to do: A running processor finishes or renews its records in time, so records listed until `first_expires_at`
-- belong to a dead one. Policy `dlq`: the record goes to `dead_letter_topic`; inform the readers of that topic. Policy
-- `redeliver`: the record is delivered again, up to `max_deliveries` times. If the number is near that of
-- `waiting_by_group`, a whole group is down: start it.
-- Kind: waiting now
\if :{?minutes} \else \set minutes 10 \endif

select
    consumer_group,
    original_topic,
    instance,
    count(*) as records,
    min(wait_expiration_time) as first_expires_at,
    max(wait_expiration_time) as last_expires_at,
    min(expiry_policy) as policy,
    max(max_deliveries) as max_deliveries,
    min(dead_letter_topic) as dead_letter_topic
from wait
where wait_expiration_time >= now()
    and wait_expiration_time < now() + make_interval(mins => cast(:'minutes' as int))
group by consumer_group, original_topic, instance
order by first_expires_at;
