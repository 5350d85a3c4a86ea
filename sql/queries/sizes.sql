-- How large are the tables, and are they kept clean?
-- What to do: If `dead_rows` is far above `rows` for wait, or `vacuumed_at` is old, autovacuum is too slow or a long
-- transaction blocks it (pg_stat_activity, oldest xact_start). If `indexes` is far above `table_only` and there are few
-- rows, the indexes are bloated: reindex concurrently. If dead_letter is large, lower sweeper.retention_days;
-- `growth_per_day` shows when it grew. Numbers of rows are estimates.
-- Kind: the system
select
    class.relname as table_name,
    coalesce(stats.n_live_tup, 0) as rows,
    coalesce(stats.n_dead_tup, 0) as dead_rows,
    pg_total_relation_size(class.oid) as total_bytes,
    pg_size_pretty(pg_total_relation_size(class.oid)) as total,
    pg_size_pretty(pg_relation_size(class.oid)) as table_only,
    pg_size_pretty(pg_indexes_size(class.oid)) as indexes,
    pg_size_pretty(coalesce(pg_total_relation_size(nullif(class.reltoastrelid, 0)), 0)) as large_values,
    greatest(stats.last_vacuum, stats.last_autovacuum) as vacuumed_at,
    greatest(stats.last_analyze, stats.last_autoanalyze) as analyzed_at
from pg_class as class
left join pg_stat_user_tables as stats on stats.relid = class.oid
where class.relnamespace = to_regnamespace(quote_ident(current_schema())) and class.relkind = 'r'
    and class.relname in ('wait', 'dead_letter', 'late_outcome', 'quarantine', 'sweep', 'sink_progress')
order by total_bytes desc, table_name;
