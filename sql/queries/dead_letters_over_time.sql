-- When were records dead-lettered, by reason and error class?
-- What to do: Find the bucket in which the problem started, and compare it with what happened then, for instance a
-- deployment or an outage of the downstream. If the numbers rise and stay high, suspect a bug or a changed downstream.
-- If they fall again, the outage is over: redrive. One bucket of `expired` means that a process died. minutes=5
-- hours=3 gives smaller buckets; `dead_letters_by_reason` gives totals.
-- Kind: dead letters
\if :{?hours} \else \set hours 24 \endif
\if :{?minutes} \else \set minutes 60 \endif

select
    date_bin(make_interval(mins => cast(:'minutes' as int)), dead_letter_time, timestamptz '2000-01-01Z') as bucket,
    reason,
    error_class,
    count(*) as dead_letters,
    count(*) filter (where finished_late) as finished_late
from dead_letter
where dead_letter_time > now() - make_interval(hours => cast(:'hours' as int))
group by bucket, reason, error_class
order by bucket desc, dead_letters desc, reason, error_class;
