"""Jobs and what was done in them, as the tables show it."""

from __future__ import annotations

import uuid
from collections import Counter
from typing import Final

from wait_registry.dead_letters.dead_letter import Reader, parse_place
from wait_registry.dead_letters.filter import Filter, Value
from wait_registry.dead_letters.listing import Rows, ask
from wait_registry.errors import ConfigurationError
from wait_registry.postgres.queries import Queries
from wait_registry.records.operation import Requested, State
from waitreg.redrive.progress import Progress

_QUERIES: Final = Queries("redrive")


def new_job() -> str:
    """Return the name of a new job, which no other job has."""
    return uuid.uuid4().hex[:12]


def find_row(reader: Reader, job: str) -> Progress | None:
    """Return how far a job has come, if the tables have it."""
    found = ask(reader, _QUERIES["job"], {"job": job})
    if not found.rows:
        return None
    row = dict(zip(found.columns, found.rows[0], strict=True))
    requested = Requested(**{name: row[name] for name in Requested.model_fields if name in row})
    return Progress(
        requested,
        State(row["state"]),
        None if row["cursor"] is None else tuple(row["cursor"]),
        Counter(row["counts"]),
        row["approved_by"],
        requested.rate,
        row["counted_from"],
        row["sent"],
    )


def require_job(reader: Reader, job: str) -> Progress:
    """Return how far a job has come.

    Raises:
        ConfigurationError: the tables don't have it.
    """
    row = find_row(reader, job)
    if row is None:
        raise ConfigurationError(
            f"the tables have no job {job!r}: `waitreg dlq jobs list` shows them; one that has just begun comes when "
            "the sink has read it"
        )
    return row


def jobs(reader: Reader, rows: int, job: str | None = None) -> Rows:
    """Return the newest jobs, or one of them."""
    return ask(reader, _QUERIES["jobs"], {"job": job, "rows": rows})


def done_before(reader: Reader, chosen: Filter, job: str) -> Rows:
    """Return which other jobs acted last on the dead letters of a filter, and who asked for them.

    Args:
        reader: of the tables.
        chosen: the conditions of the job, without those on the state.
        job: the job that found them so.
    """
    text, parameters = chosen.within(_QUERIES["done_before"])
    return ask(reader, text, [*parameters, job])


def audit(reader: Reader, since: Value, rows: int, *, deliveries: bool, **only: str | None) -> Rows:
    """Return what operators did, the newest first.

    Args:
        reader: of the tables.
        since: not before this time, the value of a condition.
        rows: how many at most.
        deliveries: also each delivery that was redriven, archived or restored.
        only: ``by``, what this user did; ``job``, this job; ``place``, what was done with the dead letter there.

    Raises:
        ConfigurationError: the place is none.
    """
    place = only.get("place")
    of = parse_place(place) if place is not None else None
    topic, partition, offset = of or (None, None, None)
    values = {
        "topic": topic,
        "topic_of_then": None if of is None else of.as_written().topic,
        "partition": partition,
        "offset": offset,
        "deliveries": deliveries,
        "since": since,
        "rows": rows,
    }
    return ask(reader, _QUERIES["audit"], {"by": None, "job": None, "place": None, **only, **values})


def history(reader: Reader, job: str) -> Rows:
    """Return who asked for a job, and who changed it when and why, in that order."""
    return ask(reader, _QUERIES["history"], {"job": job})
