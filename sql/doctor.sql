-- What `waitreg doctor` and `waitreg query` ask about the state of the tables and about permissions.

-- name: tables_age
-- One wait topic: the one of the settings if the tables have it, else the one that was written last.
select topic, min(position_time), max(seen_at), now(), sum(greatest(read_until - next_offset, 0))::bigint
from sink_progress
group by topic
order by topic = %(topic)s desc, max(seen_at) desc
limit 1;

-- name: has_rows
select exists (select from wait) or exists (select from dead_letter);

-- name: skipped_by_last_sweep
select skipped
from sweep
where wait_topic = %(topic)s
order by started_at desc
limit 1;

-- name: last_sweep
select result, due, counts, skipped, extract(epoch from clock_timestamp() - started_at)::float8
from sweep
where wait_topic = %(topic)s
order by started_at desc
limit 1;

-- name: superseded_by_last_sweeps
select coalesce((counts ->> 'superseded')::bigint, 0)
from sweep
where wait_topic = %(topic)s and result in ('done', 'partial')
order by started_at desc
limit %(sweeps)s;

-- name: rows_of_own_sink
select count(*) from sink_progress where topic = %(topic)s;

-- name: missing_on_tables
-- By oid, because a name can't be looked up in a schema that the role may not use.
select wanted.name, wanted.privilege
from unnest(%(tables)s::text[], %(privileges)s::text[]) as wanted (name, privilege)
join pg_namespace as schema on schema.nspname = %(schema)s
join pg_class as found on found.relnamespace = schema.oid and found.relname = wanted.name
where not has_table_privilege(found.oid, wanted.privilege);

-- name: other_permissions
select
    (select has_schema_privilege(oid, 'usage') from pg_namespace where nspname = %(schema)s),
    has_database_privilege(current_database(), 'temporary'),
    has_function_privilege('pg_try_advisory_lock(bigint)', 'execute');

-- name: clock
select clock_timestamp();
