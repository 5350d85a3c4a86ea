-- When were records dead-lettered, by reason and error class?
-- What to do: find the bucket in which it began and compare with what happened then (a deployment, an outage
-- downstream). A step that stays: a bug or a changed downstream. A hill: an outage that is over, redeliver. One bucket
-- of `expired`: a process died. Finer: minutes=5 hours=3; the numbers in full: `dead_letters_by_reason`.
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
