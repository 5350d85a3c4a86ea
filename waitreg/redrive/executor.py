"""Executes a job: fence, view, tail, chunks. The order is the proof that each delivery gets one mark at most.

After the *fence* no earlier executor of this group can commit. The *view* of the tables has all marks up to an offset
of the operations topic; the *tail*, read from there to the end that the topic has after the fence, has the others.
Together they are the exact marks of that moment, however far the sink is behind. A *chunk* is one transaction: the
records, a mark for each, and how far the job has come. After any error the next executor begins at the fence.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from functools import partial
from itertools import chain, islice
from typing import Final, NamedTuple

import psycopg
from confluent_kafka import Message

from wait_registry.clock import Clock, SystemClock
from wait_registry.dead_letters.filter import parse_filter
from wait_registry.dead_letters.outcome import Verdict
from wait_registry.errors import ConfigurationError, FencedError, TransientError
from wait_registry.kafka.clients import Admin, admin
from wait_registry.kafka.cluster import describe_topic
from wait_registry.kafka.errors import RecordRefused
from wait_registry.kafka.fenced_producer import FencedProducer, ToSend
from wait_registry.kafka.tail_reader import LogPartition, TailReader
from wait_registry.outage import Backoff
from wait_registry.records.lineage import one_more
from wait_registry.records.operation import (
    Advanced,
    Changed,
    Event,
    Kind,
    Mark,
    Place,
    Requested,
    State,
    encode_event,
)
from wait_registry.records.wait_id import wait_id
from wait_registry.settings.root import Settings
from waitreg.redrive.approval import first_course, needs_approval, to_send
from waitreg.redrive.brake import LOOK_S, Brake, Sent
from waitreg.redrive.category import DONE, Candidate, Standing, is_marked
from waitreg.redrive.connect_tables import require_current
from waitreg.redrive.judge import Judge, Judged, standing_of
from waitreg.redrive.operations_tail import OperationsTail
from waitreg.redrive.pace import Pace
from waitreg.redrive.progress import Progress, come_to, redriven
from waitreg.redrive.target import Ready
from waitreg.redrive.view import View

log = logging.getLogger(__name__)

CHUNK: Final = 500
CHUNK_BYTES: Final = 4_194_304
# A view is replaced after this time: what it shows of finished and waiting deliveries ages, and it holds vacuum back.
VIEW_S: Final = 60.0
FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 30.0
SYSTEM: Final = "system"


def transactional_id(group: str) -> str:
    """Return the ID by which the executors of one group fence one another; it is derived, not configured."""
    return f"waitreg.redrive.{group}"


class _Refused(Exception):
    """The broker refused a chunk, perhaps for one record of it."""


class _Sent(NamedTuple):
    """Where the broker put a record, and its time, ms since the epoch."""

    place: Place
    time_ms: int


def operations_log(settings: Settings) -> LogPartition:
    """Return what the tail of the operations topic is read from."""
    topic, timeout_s = settings.operations.topic, settings.redrive.tail_timeout_s
    return LogPartition(settings.kafka, topic, 0, timeout_s, f"waitreg.redrive.{topic}")


def require_same_operations_topic(view: View, client: Admin, settings: Settings) -> None:
    """Raise ConfigurationError if the tables were made from another operations topic of this name."""
    now = describe_topic(client, settings.operations.topic)
    if now.topic_id != view.topic_id:
        raise ConfigurationError(
            f"the tables were made from the operations topic with the ID {view.topic_id}, {now.topic} has the ID "
            f"{now.topic_id}: it was recreated, and its marks are gone. Set operations.topic to a new name"
        )


class Executor:
    """One executor of one job; `run` ends with the job, or with the state that stopped it."""

    def __init__(
        self,
        settings: Settings,
        job: Requested,
        stop: threading.Event,
        report: Callable[[Progress], None],
        clock: Clock | None = None,
        *,
        resumes: bool = True,
    ) -> None:
        """Do nothing yet.

        Args:
            settings: of the cluster, the tables and the limits.
            job: what is asked for.
            stop: set to pause the job.
            report: called after each chunk, and with the reason in the log when there is a pause.
            clock: for waits.
            resumes: whether a paused job continues; otherwise it stays paused until an event resumes it.
        """
        self._settings = settings
        self._job = job.model_copy(update={"approval": needs_approval(settings.redrive, job)})
        self._stop = stop
        self._report = report
        self._clock = clock or SystemClock()
        self._client = admin(settings.kafka)
        self._judge = Judge(settings, job, self._client, self._clock)
        self._brake = Brake(settings, job, self._client, self._clock, stop.wait)
        # The number of dead letters that are sent alone, since the broker refused the chunk that they were in.
        self._alone = 0
        self._may_resume = resumes
        # Dead letters of another group may come to meet the conditions, and their executors are others.
        self._filter = parse_filter(job.conditions, datetime.now(UTC)).only("group", [job.group])

    def run(self) -> Progress:
        """Run the job to its end; an outage of Kafka or Postgres is waited out.

        Raises:
            FencedError: an executor of this group, perhaps of another job, has begun after this one.
            ConfigurationError: fix what the message says.
        """
        backoff = Backoff(FIRST_PAUSE_S, LONGEST_PAUSE_S, random.random)
        while True:
            try:
                return self._from_fence(backoff)
            except _Refused:
                continue
            except FencedError as error:
                job, group = self._job.job, self._job.group
                raise FencedError(
                    f"{error} A job of group {group} was begun or resumed elsewhere, which ends the executor of any "
                    f"other one. If job {job} isn't ended, resume it: waitreg dlq redrive --resume {job} --send"
                ) from error
            except (TransientError, psycopg.OperationalError, psycopg.InterfaceError) as error:
                if self._stop.is_set():
                    raise
                pause_s = backoff.next_s()
                log.warning("the job waits for %.1f s: %s", pause_s, error)
                self._stop.wait(pause_s)

    def _from_fence(self, backoff: Backoff) -> Progress:
        redrive = self._settings.redrive
        # A topic that was deleted or takes less now may be why it begins again.
        self._judge.forget_topics()
        producer = FencedProducer(
            self._settings.kafka,
            transactional_id(self._job.group),
            redrive.transaction_timeout_ms,
            queued=4 * CHUNK,
            answers=True,
        )
        with closing(producer):
            producer.fence()
            while True:
                with ExitStack() as held:
                    require_current(self._settings, self._job, self._client, self._clock)
                    view = held.enter_context(closing(View(self._settings)))
                    require_same_operations_topic(view, self._client, self._settings)
                    tail = OperationsTail(view.start, self._job.job, redrive.max_tail_records)
                    reader = held.enter_context(
                        closing(TailReader(operations_log(self._settings), self._client, self._clock, tail))
                    )
                    ended = self._from_view(producer, view, tail, reader, backoff)
                if ended is not None:
                    return ended

    def _from_view(
        self, producer: FencedProducer, view: View, tail: OperationsTail, reader: TailReader, backoff: Backoff
    ) -> Progress | None:
        """Work on the job by one view; None when the view is too old to continue."""
        progress = self._begun(producer, view, tail, reader)
        if progress.state is not State.RUNNING:
            return progress
        self._report(progress)
        pace = Pace(self._clock.monotonic())
        view_ends = self._clock.monotonic() + VIEW_S
        candidates = view.candidates(self._filter, self._job.ends, progress.cursor)
        sent = redriven(view, tail, self._job.job)
        while chunk := list(self._next(candidates, progress, sent)):
            if self._stop.is_set():
                progress.state = State.PAUSED
                self._write(producer, [], [self._changed(State.PAUSED, "stopped by its executor")])
                return progress
            reader.read_on()
            now = come_to(view, tail, self._job.job)
            progress.state, progress.rate = now.state, now.rate
            if progress.state is not State.RUNNING:
                return progress
            # What is too much for a lower rate is for the next chunk.
            most = self._a_second(progress)
            if chunk[most:]:
                candidates, chunk = chain(chunk[most:], candidates), chunk[:most]
            verdict = self._brake.look(sent)
            if not verdict.proceeds:
                return self._held(producer, progress, verdict)
            judged = self._judged(chunk, view, tail)
            if judged.todo and self._left(progress) == 0:
                return self._finished(producer, progress, "more meet its conditions now than its dry run counted")
            acted = self._chunk(producer, chunk, judged, tail, progress)
            sent = sent._replace(records=sent.records + acted)
            backoff.reset()
            self._report(progress)
            self._stop.wait(pace.pause_s(acted, self._rate(progress), self._clock.monotonic()))
            if self._clock.monotonic() >= view_ends:
                return None
        return self._finished(producer, progress, "limit reached" if self._is_at_limit(progress) else "")

    def _finished(self, producer: FencedProducer, progress: Progress, reason: str) -> Progress:
        progress.state = State.FINISHED
        self._write(producer, [], [self._changed(State.FINISHED, reason)])
        return progress

    def _begun(self, producer: FencedProducer, view: View, tail: OperationsTail, reader: TailReader) -> Progress:
        """Return how far the job has come, once it is known to run; in another state, it isn't for this executor."""
        reader.read_on()
        progress = come_to(view, tail, self._job.job)
        if not progress.known:
            self._write(producer, [], [self._job])
            progress.state = first_course(self._job).state
        elif progress.state in (State.RUNNING, State.PAUSED) and self._job.approval and progress.approved_by is None:
            return self._awaiting(producer, progress)
        elif progress.state is State.PAUSED and self._may_resume:
            self._write(producer, [], [self._changed(State.RUNNING, "resumed")])
            progress.state = State.RUNNING
            # Records count from this event on.
            reader.read_on()
        # An operator who pauses it from now on means this executor, whatever makes it begin again at the fence.
        self._may_resume = False
        return progress

    def _held(self, producer: FencedProducer, progress: Progress, verdict: Verdict) -> Progress | None:
        """Pause the job if there is a reason; otherwise wait a little, for a look with another view."""
        if not verdict.reason:
            self._stop.wait(LOOK_S)
            return None
        log.warning("the job is paused: %s", verdict.reason)
        paused = Changed(job=self._job.job, state=State.PAUSED, by=SYSTEM, reason=verdict.reason)
        self._write(producer, [], [paused])
        progress.state = State.PAUSED
        return progress

    def _awaiting(self, producer: FencedProducer, progress: Progress) -> Progress:
        """Have the job wait for an approval."""
        reason = "it needs the approval of another person"
        self._write(producer, [], [Changed(job=self._job.job, state=State.AWAITING, by=SYSTEM, reason=reason)])
        progress.state = State.AWAITING
        return progress

    def _rate(self, progress: Progress) -> float:
        """Return how many records per second are sent at most."""
        return min(progress.rate or self._job.rate, self._settings.redrive.max_rate)

    def _a_second(self, progress: Progress) -> int:
        """Return how many dead letters a chunk has at most."""
        return max(1, min(CHUNK, int(self._rate(progress))))

    def _left(self, progress: Progress) -> int | None:
        """Return how many more dead letters the job may act on: no more than its dry run counted, or None."""
        most = to_send(self._job) if self._job.expected else self._job.limit
        return None if most is None else max(0, most - progress.counts[DONE[self._job.kind]])

    def _is_at_limit(self, progress: Progress) -> bool:
        return self._job.limit is not None and progress.counts[DONE[self._job.kind]] >= self._job.limit

    def _next(self, candidates: Iterator[Candidate], progress: Progress, sent: Sent) -> Iterator[Candidate]:
        """Yield the dead letters of the next chunk: those of one second at most, and not too many bytes."""
        if self._is_at_limit(progress):
            return
        left, canary, size = self._left(progress), self._brake.canary_left(sent), 0
        most = 1 if self._alone else min(self._a_second(progress), canary or CHUNK)
        for candidate in islice(candidates, min(most, left or CHUNK)):
            yield candidate
            size += candidate.most_bytes
            if size >= CHUNK_BYTES:
                return

    def _judged(self, chunk: list[Candidate], view: View, tail: OperationsTail) -> Judged:
        """Return what is done with each dead letter of a chunk, with the records that are to be sent."""
        judged = self._judge.judge(chunk, view, tail)
        self._judge.prepare(judged, view)
        return judged

    def _chunk(
        self, producer: FencedProducer, chunk: list[Candidate], judged: Judged, tail: OperationsTail, progress: Progress
    ) -> int:
        """Write one chunk; return how many dead letters it acted on."""
        counts = progress.counts + judged.counts
        advanced = Advanced(job=self._job.job, cursor=judged.cursor, counts=dict(counts))
        sent: dict[Place, _Sent] = {}
        try:
            self._write(producer, judged.ready, [advanced], partial(self._marks, judged.todo, sent, tail), sent)
        except RecordRefused as error:
            by_operations = producer.refused_by == self._settings.operations.topic
            if not judged.ready or (by_operations and len(chunk) == 1):
                raise  # no verdict on the dead letter: its mark is refused
            if len(chunk) == 1:
                log.warning("the broker refused %s: %s", chunk[0].place, error)
                self._judge.refused.add(chunk[0].place)
            self._alone = max(self._alone, len(chunk))
            raise _Refused from error
        self._alone = max(0, self._alone - 1)
        progress.cursor, progress.counts = judged.cursor, counts
        return len(judged.todo)

    def _write(
        self,
        producer: FencedProducer,
        ready: list[Ready],
        events: list[Event],
        marks: Callable[[], list[Mark]] = list,
        sent: dict[Place, _Sent] | None = None,
    ) -> None:
        """Write records, marks and events in one transaction; the marks say where the records are."""
        answers: dict[Place, _Sent] = {} if sent is None else sent
        limits = self._judge.route.limits({self._settings.operations.topic, *(record.topic for record in ready)})
        doing = f"redriving {len(ready)} records of group {self._job.group}"
        producer.write([partial(_records, ready, answers), lambda: self._events([*marks(), *events])], limits, doing)

    def _events(self, events: Iterable[Event]) -> Iterator[ToSend]:
        topic, key = self._settings.operations.topic, self._job.job.encode()
        for event in events:
            yield ToSend(topic, 0, key, encode_event(event), [])

    def _marks(self, todo: list[Candidate], sent: dict[Place, _Sent], tail: OperationsTail) -> list[Mark]:
        return [self._mark(candidate, sent.get(candidate.place), tail) for candidate in todo]

    def _mark(self, candidate: Candidate, sent: _Sent | None, tail: OperationsTail) -> Mark:
        assert candidate.wait_id is not None
        assert sent is not None or self._job.kind is not Kind.REDRIVE
        standing = standing_of(candidate, tail)
        mark = Mark(
            job=self._job.job,
            kind=self._job.kind,
            group=self._job.group,
            by=self._job.by,
            wait_id=candidate.wait_id,
            dead_letters=self._of_delivery(candidate, tail),
            record=candidate.record,
            record_time_ms=candidate.record_time_ms,
            number=standing.number + (sent is not None),
            edited=self._job.replacement is not None,
        )
        if sent is None:
            return mark
        next_id = wait_id(self._judge.cluster, *sent.place, self._job.group, sent.time_ms)
        delivery = None if candidate.delivery is None else one_more(candidate.delivery)
        where = {"target": sent.place, "target_time_ms": sent.time_ms, "next_wait_id": next_id, "delivery": delivery}
        return mark.model_copy(update=where)

    def _of_delivery(self, candidate: Candidate, tail: OperationsTail) -> tuple[Place, ...]:
        """Return the dead letters that a mark is of: those of the delivery that the dry run has seen.

        Without those in whose state it does nothing: what was redriven isn't archived, and so not restored.
        """
        places = [candidate.marked_place]
        for place, state in candidate.of_delivery:
            seen = place.offset < self._job.ends.get(place.topic, {}).get(place.partition, 0)
            now = tail.standing(place, candidate.wait_id, None, Standing(state)).state
            if seen and is_marked(now, self._job.kind, self._job.allowed):
                places.append(place)
        return tuple(dict.fromkeys(places))

    def _changed(self, state: State, reason: str) -> Changed:
        return Changed(job=self._job.job, state=state, by=self._job.by, reason=reason)


def find_job(settings: Settings, name: str, client: Admin) -> tuple[Requested, Progress]:
    """Return a job and how far it has come.

    Raises:
        ConfigurationError: there is no such job.
    """
    with closing(View(settings)) as view:
        tail = OperationsTail(view.start, name, settings.redrive.max_tail_records)
        with closing(TailReader(operations_log(settings), client, SystemClock(), tail)) as reader:
            reader.read_on()
        row = view.job(name)
        requested = tail.requested if row is None else row.requested
        if requested is None:
            raise ConfigurationError(f"there is no job {name!r}: `waitreg dlq jobs` lists them")
        return requested, come_to(view, tail, name)


def _records(ready: list[Ready], sent: dict[Place, _Sent]) -> Iterator[ToSend]:
    for record in ready:
        heard = partial(_heard, sent, record.candidate.place)
        yield ToSend(record.topic, record.partition, record.key, record.value, record.headers, heard)


def _heard(sent: dict[Place, _Sent], of: Place, message: Message) -> None:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None and partition is not None and offset is not None
    sent[of] = _Sent(Place(topic, partition, offset), message.timestamp()[1])
