-- What the sweeper asks for its alerts besides the number of dead letters (sweeper/alerts/counting.py).

-- name: try_lock
-- Held by a session: of several sweepers, one evaluates and sends.
select pg_try_advisory_lock(hashtextextended('waitreg.alerts ' || current_schema(), 0));

-- name: tables_staleness
-- How old the tables are, by the topics that the sink read last. A topic that it no longer reads has an old seen_at.
select extract(epoch from clock_timestamp() - min(position_time))::float8
from (select position_time, seen_at, max(seen_at) over () as newest from sink_progress) as position
where seen_at >= newest - make_interval(secs => %(old_s)s);
