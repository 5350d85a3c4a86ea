-- Indexes for the metrics of dead letters and jobs (sql/backlog.sql), which are counted every 30 seconds. `create index`
-- without `concurrently` blocks the sink for the seconds of the build; docs/decisions/0035-who-counts-dead-letters.md
-- has the numbers. Longer names, which a B-tree may not take, no processor writes.

create index dead_letter_backlog on dead_letter (consumer_group, topic, reason, dead_letter_time)
where state = 'open' and coalesce(length(consumer_group), 0) < 250;
create index dead_letter_error on dead_letter (consumer_group, topic, error_class, dead_letter_time)
where length(consumer_group) < 250 and length(error_class) <= 256;
create index operation_unfinished on operation (changed_at) where state in ('running', 'paused');
