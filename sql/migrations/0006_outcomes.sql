-- What became of redriven records: the number of the delivery that a redrive began, the canary of a job, and the offset
-- of the operations topic from which records count for the automatic pause.
alter table dead_letter_mark add column delivery int;

drop index dead_letter_mark_next;
drop index dead_letter_mark_job;
create index dead_letter_mark_job on dead_letter_mark (job, "offset");

alter table operation
add column canary bigint,
add column counted_from bigint not null default 0;
