-- The approval of a job by another person, and what persons did besides jobs and marks: a copy of the operations topic.
alter table operation
add column approval boolean not null default false,
add column approved_by text;

drop index operation_unfinished;
create index operation_unfinished on operation (changed_at) where state in ('awaiting', 'running', 'paused');

-- One row per change of a job's state or rate, per approval and per reveal of hidden contents; never updated. The offset
-- is that of the operations topic; `authenticated` is null if the record doesn't say it.
create table operator_event (
    "offset" bigint primary key,
    event text not null,
    job text,
    consumer_group text,
    done_at timestamptz not null,
    done_by text not null,
    authenticated boolean,
    detail text not null,
    dead_letter_topic text,
    dead_letter_partition int,
    dead_letter_offset bigint
);

create index operator_event_job on operator_event (job, "offset");
create index operator_event_age on operator_event (done_at);
