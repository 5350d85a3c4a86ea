"""What the operations topic says after the tables' position: marks, and how far a job has come."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from wait_registry.errors import DataError, TransientError
from wait_registry.records.operation import Event, JobEvent, Kind, Mark, Place, Requested, decode_event
from waitreg.redrive.job_decision import Standing
from waitreg.redrive.progress import Progress, begun

if TYPE_CHECKING:
    from confluent_kafka import Message


class OperationsTail:
    """The events from an offset on: with tables that are exact below it, the exact marks of the moment of reading."""

    def __init__(self, start: int, job: str, most: int, progress: Progress | None = None) -> None:
        """Start at an offset.

        Args:
            start: the tables have all marks below it.
            job: whose progress is of interest.
            most: how many marks are held at most.
            progress: of this job, as the tables show it; None if they don't have it.
        """
        self.start = start
        self._progress = progress
        self._sent = 0  # marks of the job's records since its last event
        self._job = job
        self._most = most
        self._marks: dict[str, list[Mark]] = {}
        self._of_record: Counter[tuple[Place, int | None]] = Counter()
        self._count = 0

    @property
    def progress(self) -> Progress | None:
        """How far the job has come; None if it isn't known."""
        if self._progress is not None and self._sent:
            self._progress, self._sent = replace(self._progress, sent=self._progress.sent + self._sent), 0
        return self._progress

    def take(self, message: Message) -> None:
        """Take the next record.

        Raises:
            TransientError: there are more marks than are held, or a record can't be read, which may be a mark: the
                sink passes it over, and then the tail starts behind it.
        """
        offset = message.offset()
        assert offset is not None  # it was read from a log
        try:
            event = decode_event(message.value())
        except DataError as error:
            raise TransientError(
                f"{Place(message.topic() or '', 0, offset)}: {error}. It may be a mark, so nothing is done until "
                "the sink has passed it over and keeps it in the table quarantine: start `waitreg sink`, or wait"
            ) from error
        self.add(event, offset)

    def add(self, event: Event, offset: int) -> None:
        """Add an event, which has this offset; call in the order of offsets.

        Raises:
            TransientError: there are more marks than are held: the sink is too far behind.
        """
        if isinstance(event, Mark):
            self._marks.setdefault(event.wait_id, []).append(event)
            if event.record is not None and event.kind is Kind.REDRIVE:
                self._of_record[event.record, event.record_time_ms] += 1
                self._sent += self._progress is not None and event.job == self._job
            self._count += 1
            if self._count > self._most:
                raise TransientError(
                    f"the operations topic has more than {self._most} marks beyond the tables "
                    "(redrive.max_tail_records): wait until the sink has caught up"
                )
        elif isinstance(event, JobEvent) and event.job == self._job:
            if (progress := self.progress) is not None:
                self._progress = progress.after(event, offset)
            elif isinstance(event, Requested):
                self._progress = begun(event)

    @property
    def marked(self) -> list[str]:
        """Return the wait IDs of the deliveries that have marks here."""
        return list(self._marks)

    def standing(
        self, place: Place, wait_id: str | None, record: Place | None, shown: Standing, time_ms: int | None = None
    ) -> Standing:
        """Return what tables and tail together say of a dead letter.

        Args:
            place, wait_id, record: where it is, with the ID of its topic; its delivery, and its record.
            shown: what the tables say.
            time_ms: the timestamp of its record.
        """
        marks = self._marks.get(wait_id or "")
        more = self._of_record.get((record, time_ms), 0) if record is not None else 0
        if marks is None:
            return shown._replace(of_record=shown.of_record + more) if more else shown
        redriven = sum(mark.kind is Kind.REDRIVE for mark in marks)
        counted = shown._replace(number=shown.number + redriven, of_record=shown.of_record + more)
        last = next((mark for mark in reversed(marks) if mark.covers(place)), None)
        return counted if last is None else counted._replace(state=last.kind.state, job=last.job)
