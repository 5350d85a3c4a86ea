"""Makes the mark of a delivery: what was done, of which dead letters, and where the record was sent."""

from __future__ import annotations

from typing import NamedTuple

from wait_registry.records.lineage import one_more
from wait_registry.records.operation import Kind, Mark, Place, Requested
from wait_registry.records.wait_id import wait_id
from waitreg.redrive.exact_marks import ExactMarks
from waitreg.redrive.job_decision import Candidate, Standing, is_marked


class Acknowledged(NamedTuple):
    """Where the broker put a record, and its time, ms since the epoch."""

    place: Place
    time_ms: int


def mark_of(
    candidate: Candidate, job: Requested, marks: ExactMarks, sent: Acknowledged | None, cluster_id: str
) -> Mark:
    """Return the mark of a delivery that a job acts on.

    Args:
        candidate: the dead letter that is of this delivery.
        job: what was asked for.
        marks: read to the end of the operations topic.
        sent: where the record was sent, in a redrive.
        cluster_id: of the Kafka cluster, for the ID of the next delivery.
    """
    assert candidate.wait_id is not None
    assert sent is not None or job.kind is not Kind.REDRIVE
    mark = Mark(
        job=job.job,
        kind=job.kind,
        group=job.group,
        by=job.by,
        wait_id=candidate.wait_id,
        dead_letters=_of_delivery(candidate, job, marks),
        record=candidate.record,
        record_time_ms=candidate.record_time_ms,
        number=marks.standing(candidate).number + (sent is not None),
        edited=job.replacement is not None,
    )
    if sent is None:
        return mark
    next_id = wait_id(cluster_id, sent.place, job.group, sent.time_ms)
    delivery = None if candidate.delivery is None else one_more(candidate.delivery)
    where = {"target": sent.place, "target_time_ms": sent.time_ms, "next_wait_id": next_id, "delivery": delivery}
    return mark.model_copy(update=where)


def _of_delivery(candidate: Candidate, job: Requested, marks: ExactMarks) -> tuple[Place, ...]:
    """Return the dead letters that a mark is of: those of the delivery that the dry run has seen.

    Without those in whose state it does nothing: what was redriven isn't archived, and so not restored.
    """
    places = [candidate.marked_place]
    for place, state in candidate.twins:
        seen = place.offset < job.ends.get(place.topic, {}).get(place.partition, 0)
        now = marks.tail.standing(place, candidate.wait_id, None, Standing(state)).state
        if seen and is_marked(now, job):
            places.append(place)
    return tuple(dict.fromkeys(places))
