-- What expires within the next minutes, and what becomes of it then?
-- What to do: a living processor finishes or renews its records in time, so what stands here until `first_expires_at`
-- was left by a dead one. `dlq`: it goes to `dead_letter_topic`, warn who reads that; `redeliver`: it is delivered
-- again, up to `max_deliveries`. A number near that of `waiting_by_group`: a whole group has died, start it.
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
