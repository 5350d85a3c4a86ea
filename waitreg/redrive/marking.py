"""Makes the marks of deliveries: what was done, of which dead letters, and where the record was sent."""

from __future__ import annotations

from confluent_kafka import Message

from wait_registry.records.lineage import one_more
from wait_registry.records.operation import Kind, Requested, encode_mark
from wait_registry.records.wait_id import wait_id
from waitreg.redrive.exact_marks import ExactMarks
from waitreg.redrive.job_decision import Candidate, Standing, is_marked


class Marking:
    """Encodes the marks of one job, one per delivery that the job acts on."""

    def __init__(self, job: Requested, marks: ExactMarks, cluster_id: str) -> None:
        """Encode nothing yet.

        Args:
            job: what was asked for.
            marks: read to the end of the operations topic.
            cluster_id: of the Kafka cluster, for the ID of the next delivery.
        """
        self._job = job
        self._marks = marks
        self._cluster_id = cluster_id
        self._shared: dict[str, object] = {"job": job.job, "kind": job.kind.value, "group": job.group, "by": job.by}
        if job.replacement is not None:
            self._shared["edited"] = True

    def value(self, candidate: Candidate, sent: Message | None) -> bytes:
        """Return the value of the record that marks a delivery; errors as `encode_mark`.

        Args:
            candidate: the dead letter that is of this delivery.
            sent: what the broker said of the record that was sent, in a redrive.
        """
        assert sent is not None or self._job.kind is not Kind.REDRIVE
        fields: dict[str, object] = {
            **self._shared,
            "wait_id": candidate.wait_id,
            "dead_letters": self._of_delivery(candidate),
            "number": self._marks.standing(candidate).number + (sent is not None),
        }
        if candidate.record is not None:
            fields["record"] = [*candidate.record]
        if candidate.record_time_ms is not None:
            fields["record_time_ms"] = candidate.record_time_ms
        if sent is not None:
            fields |= self._where(sent)
            if candidate.delivery is not None:
                fields["delivery"] = one_more(candidate.delivery)
        return encode_mark(fields)

    def _where(self, sent: Message) -> dict[str, object]:
        topic, partition, offset = sent.topic(), sent.partition(), sent.offset()
        assert topic is not None and partition is not None and offset is not None
        time_ms = sent.timestamp()[1]
        next_id = wait_id(self._cluster_id, (topic, partition, offset), self._job.group, time_ms)
        return {"target": [topic, partition, offset], "target_time_ms": time_ms, "next_wait_id": next_id}

    def _of_delivery(self, candidate: Candidate) -> list[list[str | int]]:
        """Return the dead letters that a mark is of: those of the delivery that the dry run has seen.

        Without those in whose state it does nothing: what was redriven isn't archived, and so not restored.
        """
        if not candidate.twins:
            return [[*candidate.marked_place]]
        places = {candidate.marked_place: None}
        for place, state in candidate.twins:
            seen = place.offset < self._job.ends.get(place.topic, {}).get(place.partition, 0)
            now = self._marks.tail.standing(place, candidate.wait_id, None, Standing(state)).state
            if seen and is_marked(now, self._job):
                places[place] = None
        return [[*place] for place in places]
