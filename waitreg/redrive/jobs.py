"""Jobs and what was done in them, as the tables show it."""

from __future__ import annotations

import uuid
from typing import Any, Final

from wait_registry.dead_letters.dead_letter import Reader, parse_place
from wait_registry.dead_letters.filter import Filter, Value
from wait_registry.dead_letters.listing import Rows
from wait_registry.errors import ConfigurationError
from wait_registry.records.operation import Requested

_JOBS: Final = """
select
    job, concat(kind, case when replacement is not null then ', edited' end) as kind, consumer_group as "group", state,
    requested_at, requested_by as by, reason,
    array_to_string(conditions, ' ') as conditions, rate,
    (
        select string_agg(category || ': ' || letters, ', ' order by category)
        from jsonb_each_text(counts) as counted (category, letters)
    ) as dead_letters,
    changed_at, changed_by, changed_reason, approved_by
from operation
where {where}
order by requested_at desc, job
limit %s
"""
_AUDIT: Final = """
select * from (
    select
        requested_at as at, requested_by as by,
        concat(kind, case when replacement is not null then ', edited' end) as what, job, consumer_group as "group",
        null as record, null as sent_to, authenticated, reason, array_to_string(conditions, ' ') as conditions,
        null as wait_id
    from operation
    where %(place)s::text is null
    union all
    select
        mark.marked_at, mark.marked_by, concat(mark.kind, case when mark.edited then ', edited' end), mark.job,
        mark.consumer_group,
        mark.original_topic || ':' || mark.original_partition || ':' || mark.original_offset,
        mark.target_topic || ':' || mark.target_partition || ':' || mark.target_offset,
        null, null, null, mark.wait_expiration_uuid
    from dead_letter_mark as mark
    where %(deliveries)s and (
        %(place)s::text is null
        or mark.wait_expiration_uuid in (
            select letter.wait_expiration_uuid
            from dead_letter as letter
            where letter.topic = %(topic)s and letter.partition = %(partition)s and letter."offset" = %(offset)s
        )
    )
    union all
    select
        event.done_at, event.done_by, event.event, event.job, coalesce(event.consumer_group, operation.consumer_group),
        dead_letter_topic || ':' || dead_letter_partition || ':' || dead_letter_offset, null,
        event.authenticated, detail, null, null
    from operator_event as event
    left join operation using (job)
    where %(place)s::text is null
        or (dead_letter_topic in (%(topic)s, %(topic_of_then)s)
            and dead_letter_partition = %(partition)s and dead_letter_offset = %(offset)s)
) as done
where at >= %(since)s and (%(by)s::text is null or by = %(by)s) and (%(job)s::text is null or job = %(job)s)
order by at desc, job, record
limit %(rows)s
"""


_HISTORY: Final = b"""
select requested_at as at, requested_by as by, authenticated, 'asked for' as what, reason
from operation
where job = %(job)s
union all
select done_at, done_by, authenticated, event, detail from operator_event where job = %(job)s
order by at
"""
_DONE_BEFORE: Final = """
select job, state_by as by, state, max(state_at) as at, count(*) as dead_letters
from dead_letter
where {where} and job <> %s
group by job, state_by, state
order by at desc, job
limit 20
"""


def new_job() -> str:
    """Return the name of a new job, which no other job has."""
    return uuid.uuid4().hex[:12]


def jobs(reader: Reader, rows: int, job: str | None = None) -> Rows:
    """Return the newest jobs, or one of them."""
    where, parameters = ("true", []) if job is None else ("job = %s", [job])
    return _rows(reader, _JOBS.format(where=where), [*parameters, rows])


def done_before(reader: Reader, chosen: Filter, job: str) -> Rows:
    """Return which other jobs acted last on the dead letters of a filter, and who asked for them.

    Args:
        reader: of the tables.
        chosen: the conditions of the job, without those on the state.
        job: the job that found them so.
    """
    where, parameters = chosen.sql()
    return _rows(reader, _DONE_BEFORE.format(where=where), [*parameters, job])


def requested(reader: Reader, job: str) -> Requested:
    """Return what was asked for, without the ends of its selection; call `require_job` first."""
    query = b"""
        select
            kind, consumer_group, requested_by, authenticated, via, reason, conditions, target, rate, record_limit,
            canary, approval, allowed, expected, replacement
        from operation
        where job = %s
    """
    row = reader.execute(query, [job]).fetchone()
    assert row is not None  # require_job found it
    names = (
        "kind",
        "group",
        "by",
        "authenticated",
        "via",
        "reason",
        "conditions",
        "target",
        "rate",
        "limit",
        "canary",
        "approval",
        "allowed",
        "expected",
        "replacement",
    )
    return Requested(job=job, ends={}, **dict(zip(names, row, strict=True)))


def audit(
    reader: Reader,
    since: Value,
    rows: int,
    *,
    deliveries: bool,
    by: str | None = None,
    job: str | None = None,
    place: str | None = None,
) -> Rows:
    """Return what operators did, the newest first.

    Args:
        reader: of the tables.
        since: not before this time, the value of a condition.
        rows: how many at most.
        deliveries: also each delivery that was redriven, archived or restored.
        by: only what this user did.
        job: only this job.
        place: only what was done with the dead letter at this place.

    Raises:
        ConfigurationError: the place is none.
    """
    of = parse_place(place) if place is not None else None
    topic, partition, offset = of or (None, None, None)
    topic_of_then = of.as_written().topic if of is not None else None
    values = {
        "topic": topic,
        "topic_of_then": topic_of_then,
        "partition": partition,
        "offset": offset,
        "place": place,
        "deliveries": deliveries,
    }
    cursor = reader.execute(_AUDIT.encode(), {**values, "since": since, "rows": rows, "by": by, "job": job})
    return Rows([column.name for column in cursor.description or ()], cursor.fetchall())


def history(reader: Reader, job: str) -> Rows:
    """Return who asked for a job, and who changed it when and why, in that order."""
    cursor = reader.execute(_HISTORY, {"job": job})
    return Rows([column.name for column in cursor.description or ()], cursor.fetchall())


def require_job(reader: Reader, job: str) -> str:
    """Return the state of a job.

    Raises:
        ConfigurationError: the tables don't have it.
    """
    row = reader.execute(b"select state from operation where job = %s", [job]).fetchone()
    if row is None:
        raise ConfigurationError(
            f"the tables have no job {job!r}: `waitreg dlq jobs list` shows them; one that has just begun comes when "
            "the sink has read it"
        )
    return str(row[0])


def _rows(reader: Reader, text: str, parameters: list[Any]) -> Rows:
    cursor = reader.execute(text.encode(), parameters)
    return Rows([column.name for column in cursor.description or ()], cursor.fetchall())
