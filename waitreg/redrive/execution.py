"""The execution of a job as a pipeline of values: fence, snapshot, chunks. The order proves one mark per delivery.

After the *fence* no earlier executor of this group can commit. The *snapshot* of the tables has all marks up to an
offset of the operations topic. The *tail*, read from there to the end that the topic has after the fence, has the
others. Together they are the exact marks of that moment, however far the sink is behind. A *chunk* is one transaction:
the records, a mark for each, and how far the job has come. Each step returns the value that has the next step, so that
no other order can be written. After any error the next executor begins at the fence.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum, auto
from functools import partial
from types import MappingProxyType
from typing import Final

from confluent_kafka import Message

from wait_registry.clock import Clock
from wait_registry.dead_letters.filter import Filter, parse_filter
from wait_registry.kafka.clients import Admin
from wait_registry.kafka.errors import RecordRefused
from wait_registry.kafka.fenced_producer import FencedProducer, ToSend
from wait_registry.records.operation import Advanced, Changed, Event, Place, Requested, State, encode_event
from wait_registry.settings.tree import Settings
from waitreg.redrive.approval import to_send
from waitreg.redrive.classifier import CHUNK, Classifier, Decision, next_candidates
from waitreg.redrive.connect_tables import require_current
from waitreg.redrive.exact_marks import ExactMarks, exact_marks
from waitreg.redrive.job_decision import DONE, Candidate
from waitreg.redrive.marking import Marking
from waitreg.redrive.outcome_check import CHECK_S, OutcomeCheck
from waitreg.redrive.progress import Progress
from waitreg.redrive.rate_limit import chunk_size
from waitreg.redrive.refusals import Refusals

log = logging.getLogger(__name__)

# A snapshot is replaced after this time: what it shows of finished and waiting deliveries, and what is known of topics
# and members, ages, and it holds vacuum back.
SNAPSHOT_S: Final = 30.0
SYSTEM: Final = "system"


class Restart(Enum):
    """The step from which alone a job can continue."""

    FENCE = auto()
    SNAPSHOT = auto()


@dataclass(frozen=True, slots=True)
class Task:
    """One job of one executor.

    Attributes:
        settings: of the cluster, the tables and the limits.
        job: what is asked for.
        client: of the cluster.
        classifier: of its dead letters.
        check: of what became of its records.
        stop: set to pause the job.
        clock: for deadlines.
    """

    settings: Settings
    job: Requested
    client: Admin
    classifier: Classifier
    check: OutcomeCheck
    stop: threading.Event
    clock: Clock

    @property
    def chosen(self) -> Filter:
        """Return the dead letters of the job; those of another group may come to meet its conditions as well."""
        return parse_filter(self.job.conditions, datetime.now(UTC)).only("group", [self.job.group])

    def rate(self, progress: Progress) -> float:
        """Return how many records per second are sent at most."""
        return min(progress.rate, self.settings.redrive.max_rate)

    def left(self, progress: Progress) -> int | None:
        """Return how many more dead letters the job may act on: no more than its dry run counted, or None."""
        most = to_send(self.job) if self.job.expected else self.job.limit
        return None if most is None else max(0, most - self._done(progress))

    def is_at_limit(self, progress: Progress) -> bool:
        """Return whether the job has acted on as many dead letters as its limit says."""
        return self.job.limit is not None and self._done(progress) >= self.job.limit

    def _done(self, progress: Progress) -> int:
        return progress.counts[DONE[self.job.kind]]


def transactional_id(group: str) -> str:
    """Return the ID by which the executors of one group fence one another; it is derived, not configured."""
    return f"waitreg.redrive.{group}"


def fence(task: Task, held: ExitStack) -> Fenced:
    """Shut out every earlier executor of the group; errors as `FencedProducer.fence`.

    Args:
        task: the job.
        held: closes the producer.
    """
    name, timeout_ms = transactional_id(task.job.group), task.settings.redrive.transaction_timeout_ms
    producer = FencedProducer(task.settings.kafka, name, timeout_ms, queued=4 * CHUNK, answers=True)
    held.callback(producer.close)
    producer.fence()
    return Fenced(task, producer)


@dataclass(frozen=True, slots=True)
class Fenced:
    """A group of which only this producer can commit redrives."""

    task: Task
    producer: FencedProducer

    def snapshot(self, held: ExitStack) -> Snapshot:
        """Read the exact marks; errors as `require_current` and `exact_marks`.

        Args:
            held: closes the snapshot.
        """
        task = self.task
        # A topic that was deleted or takes less now may be why the job begins again.
        task.classifier.forget()
        require_current(task.settings, task.job.kind, task.client, task.clock)
        marks = exact_marks(task.settings, task.client, task.clock, task.job.job)
        return Snapshot(self, held.enter_context(marks), task.clock.monotonic() + SNAPSHOT_S)

    def write(
        self,
        events: Sequence[Event],
        ready: Mapping[Place, ToSend] = MappingProxyType({}),
        marks: Callable[[Mapping[Place, Message]], Iterable[bytes]] = lambda _: (),
    ) -> None:
        """Write records, marks and events in one transaction; errors as `FencedProducer.write`.

        Args:
            events: of the job.
            ready: the records, by the places of their dead letters.
            marks: encodes the marks, from what the broker said of the records, by the same places.
        """
        sent: dict[Place, Message] = {}
        topics = {self.task.settings.operations.topic, *(record.topic for record in ready.values())}
        doing = f"redriving {len(ready)} records of group {self.task.job.group}"
        limits = self.task.classifier.route.limits(topics)
        parts = (partial(_records, ready, sent), lambda: self._values([*marks(sent), *map(encode_event, events)]))
        self.producer.write(parts, limits, doing)

    def _values(self, values: Iterable[bytes]) -> Iterator[ToSend]:
        topic, key = self.task.settings.operations.topic, self.task.job.job.encode()
        for value in values:
            yield ToSend(topic, 0, key, value, [])


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The exact marks after the fence; the tables are to be read until a time of the clock, s."""

    fenced: Fenced
    marks: ExactMarks
    until_s: float

    def begin(self, resumes: bool) -> Selection | Progress:
        """Have the job run, if it isn't for another one to do; otherwise return the state that stops it.

        Args:
            resumes: whether a paused job continues.
        """
        task = self.fenced.task
        event = _first_event(task.job, self.marks.tail.progress, resumes)
        if event is not None:
            self.fenced.write([event])
            # Records count from a resumption on.
            self.marks.read_on()
        progress = self.marks.progress
        if progress.state is not State.RUNNING:
            return progress
        return Selection(self, self.marks.tables.candidates(task.chosen, task.job.ends, progress.cursor))

    def end(self, state: State, by: str, reason: str) -> Progress:
        """Write that the job is in a state in which it doesn't run, and return how far it has come."""
        job = self.fenced.task.job.job
        self.fenced.write([Changed(job=job, state=state, by=by, reason=reason)])
        return replace(self.marks.progress, state=state)


def _first_event(job: Requested, progress: Progress | None, resumes: bool) -> Event | None:
    """Return what an executor writes before it sends anything."""
    if progress is None:
        return job
    begun = progress.state in (State.RUNNING, State.PAUSED)
    if begun and job.approval and progress.approved_by is None:
        reason = "it needs the approval of another person"
        return Changed(job=job.job, state=State.AWAITING, by=SYSTEM, reason=reason)
    if progress.state is State.PAUSED and resumes:
        return Changed(job=job.job, state=State.RUNNING, by=job.by, reason="resumed")
    return None


@dataclass(frozen=True, slots=True)
class Selection:
    """The dead letters that a running job hasn't come to, as one snapshot shows them."""

    snapshot: Snapshot
    candidates: Iterator[Candidate]

    def chunk(self, refusals: Refusals) -> Chunk | Progress | Restart:
        """Classify the next dead letters, after the tail was read on; write them before the next ones.

        Returns:
            The chunk; or the state that stops the job; or the step to continue from.
        """
        marks, task = self.snapshot.marks, self.snapshot.fenced.task
        marks.read_on()
        progress, job = marks.progress, task.job
        if progress.state is not State.RUNNING:
            return progress
        candidates = next_candidates(self.candidates, self._most(progress, refusals))
        if not candidates:
            reason = "limit reached" if task.is_at_limit(progress) else ""
            return self.snapshot.end(State.FINISHED, job.by, reason)
        if task.stop.is_set():
            return self.snapshot.end(State.PAUSED, job.by, "stopped by its executor")
        verdict = task.check.check(progress)
        if verdict.reason:
            log.warning("the job is paused: %s", verdict.reason)
            return self.snapshot.end(State.PAUSED, SYSTEM, verdict.reason)
        if not verdict.proceeds:
            task.stop.wait(CHECK_S)
            return Restart.SNAPSHOT
        decisions = task.classifier.decide(candidates, marks, set(), refusals.places, sends=True)
        chunk = Chunk(self.snapshot, progress, decisions, refusals)
        if chunk.done and task.left(progress) == 0:
            reason = "more meet its conditions now than its dry run counted"
            return self.snapshot.end(State.FINISHED, job.by, reason)
        return chunk

    def _most(self, progress: Progress, refusals: Refusals) -> int:
        """Return how many dead letters the next chunk has at most."""
        task = self.snapshot.fenced.task
        if task.is_at_limit(progress):
            return 0
        canary, left = task.check.canary_left(progress), task.left(progress)
        return min(chunk_size(task.rate(progress)), canary or CHUNK, left or CHUNK, refusals.most)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Dead letters that were classified together, in the order of their records.

    Attributes:
        snapshot: by which they were.
        progress: of the job before them.
        decisions: about each of them.
        refusals: before them.
    """

    snapshot: Snapshot
    progress: Progress
    decisions: Sequence[Decision]
    refusals: Refusals

    @property
    def done(self) -> list[Candidate]:
        """Return those that the job acts on."""
        done = DONE[self.snapshot.fenced.task.job.kind]
        return [decision.candidate for decision in self.decisions if decision.category is done]

    def write(self) -> Written | Refusals:
        """Write records, marks and the job's progress in one transaction; errors as `FencedProducer.write`.

        Returns:
            What is written. Or what the broker refuses, perhaps for one record of the chunk; then the fence is used up.
        """
        fenced, done = self.snapshot.fenced, self.done
        counts = self.progress.counts + Counter[str](decision.category for decision in self.decisions)
        cursor = self.decisions[-1].candidate.cursor
        ready = {each.candidate.place: each.ready for each in self.decisions if each.ready is not None}
        advanced = Advanced(job=fenced.task.job.job, cursor=cursor, counts=dict(counts))
        try:
            fenced.write([advanced], ready, partial(self._marks, done))
        except RecordRefused as error:
            if not ready or (len(self.decisions) == 1 and self._by_operations()):
                raise  # no verdict on the dead letter: its mark is refused
            return self._refused(error)
        progress = replace(self.progress, cursor=cursor, counts=counts)
        return Written(progress, len(done), self.refusals.after_success())

    def _marks(self, done: Sequence[Candidate], sent: Mapping[Place, Message]) -> list[bytes]:
        task = self.snapshot.fenced.task
        marking = Marking(task.job, self.snapshot.marks, task.classifier.cluster)
        return [marking.value(each, sent.get(each.place)) for each in done]

    def _by_operations(self) -> bool:
        fenced = self.snapshot.fenced
        return fenced.producer.refused_by == fenced.task.settings.operations.topic

    def _refused(self, error: RecordRefused) -> Refusals:
        places = [decision.candidate.place for decision in self.decisions]
        if len(places) == 1:
            log.warning("the broker refused %s: %s", places[0], error)
        return self.refusals.after_refusal(places)


@dataclass(frozen=True, slots=True)
class Written:
    """How far the job has come with a chunk, how many dead letters it acted on there, and what is refused."""

    progress: Progress
    done: int
    refusals: Refusals

    @property
    def is_last(self) -> bool:
        """Return whether the job has come to as many dead letters as its dry run counted: hardly any follow."""
        return self.progress.counts.total() >= sum(self.progress.requested.expected.values()) > 0


def _records(ready: Mapping[Place, ToSend], sent: dict[Place, Message]) -> Iterator[ToSend]:
    for place, (topic, partition, key, value, headers, _) in ready.items():
        yield ToSend(topic, partition, key, value, headers, partial(sent.__setitem__, place))
