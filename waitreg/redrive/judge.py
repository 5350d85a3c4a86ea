"""Judges the dead letters of a job by one view and the tail after it; the same for a dry run and for the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from wait_registry.clock import Clock
from wait_registry.kafka.clients import Admin
from wait_registry.kafka.cluster import cluster_id, describe_topic
from wait_registry.kafka.commit_metadata import decode_metadata
from wait_registry.kafka.committed_offsets import committed_offsets
from wait_registry.kafka.group_description import describe_group
from wait_registry.kafka.targets import Targets
from wait_registry.records.operation import Kind, Place, Requested
from wait_registry.settings.root import Settings
from waitreg.redrive.category import DONE, Candidate, Category, Rules, Standing, obstacle
from waitreg.redrive.edit import replaced
from waitreg.redrive.operations_tail import OperationsTail
from waitreg.redrive.target import Readers, Ready, Route
from waitreg.redrive.view import Cursor, View

READERS_S: Final = 30.0


def standing_of(candidate: Candidate, tail: OperationsTail) -> Standing:
    """Return what the tables and the tail after them say of a dead letter."""
    place, record, time_ms = candidate.marked_place, candidate.record, candidate.record_time_ms
    return tail.standing(place, candidate.wait_id, record, candidate.standing, time_ms)


@dataclass(slots=True)
class Judged:
    """A chunk: what is done with its dead letters, and how many come into each category."""

    todo: list[Candidate] = field(default_factory=list)
    ready: list[Ready] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    cursor: Cursor = ()


class Judge:
    """Judges the dead letters of one job."""

    def __init__(self, settings: Settings, job: Requested, client: Admin, clock: Clock) -> None:
        """Judge nothing yet."""
        self._rules = Rules(job.kind, job.job, frozenset(job.allowed), settings.redrive.max_redrives)
        self._acted = DONE[job.kind]
        self._job = job
        may_wait = Category.NO_MEMBERS in job.allowed
        readers, proof = _Readers(settings, job.group, clock), _Proof(settings, job.group, client, clock)
        self._targets = Targets(client)
        self.route = Route(job.target, self._targets, readers, proof, may_wait)
        self.cluster = cluster_id(client)
        self.refused: set[Place] = set()

    def forget_topics(self) -> None:
        """Look the topics that records go to up again."""
        self._targets.forget()

    def judge(self, candidates: Iterable[Candidate], view: View, tail: OperationsTail) -> Judged:
        """Judge the dead letters of a chunk; arguments as `category`."""
        judged, seen = Judged(), set[str]()
        for candidate in candidates:
            judged.cursor = candidate.cursor
            category = self.category(candidate, view, tail, seen)
            judged.counts[category] += 1
            if category is self._acted:
                judged.todo.append(candidate)
        return judged

    def category(self, candidate: Candidate, view: View, tail: OperationsTail, seen: set[str]) -> Category:
        """Judge a dead letter.

        Args:
            candidate: the dead letter.
            view: gives its contents where these decide.
            tail: read to the end of the operations topic.
            seen: wait IDs of those that came before it; its own is added.
        """
        standing = standing_of(candidate, tail)
        found = obstacle(candidate, standing, self._rules)
        if found is None and candidate.wait_id in seen:
            found = Category.SAME_DELIVERY
        if found is None and self._rules.kind is Kind.REDRIVE:
            found = self._obstacle_on_the_way(candidate, view)
        if found is None:
            seen.add(candidate.wait_id or "")
        return found or self._acted

    def _obstacle_on_the_way(self, candidate: Candidate, view: View) -> Category | None:
        if candidate.place in self.refused:
            return Category.REFUSED
        found = self.route.obstacle(candidate)
        if found is not None or (self._job.replacement is None and self.route.surely_fits(candidate)):
            return found
        ready = self._ready(candidate, view.contents([candidate])[candidate.place])
        return ready if isinstance(ready, Category) else None

    def _ready(self, candidate: Candidate, row: Mapping[str, Any]) -> Ready | Category:
        edited = replaced(row, self._job, self.cluster)
        return Category.CHANGED if edited is None else self.route.ready(candidate, edited)

    def prepare(self, judged: Judged, view: View) -> None:
        """Read the contents of what is to be sent; what can't be sent after all is counted so."""
        if self._rules.kind is not Kind.REDRIVE or not judged.todo:
            return
        rows, sendable = view.contents(judged.todo), []
        for candidate in judged.todo:
            ready = self._ready(candidate, rows[candidate.place])
            if isinstance(ready, Category):
                judged.counts[self._acted] -= 1
                judged.counts[ready] += 1
            else:
                sendable.append(candidate)
                judged.ready.append(ready)
        judged.todo = sendable


class _Proof:
    """Asks what the commits of a group say of redeliveries to an input topic, at most every `READERS_S` per topic."""

    def __init__(self, settings: Settings, group: str, client: Admin, clock: Clock) -> None:
        self._kafka = settings.kafka
        self._group = group
        self._client = client
        self._clock = clock
        self._known: dict[str, tuple[float, bool]] = {}

    def __call__(self, topic: str) -> bool:
        now, known = self._clock.monotonic(), self._known.get(topic)
        if known is None or now >= known[0] + READERS_S:
            known = self._known[topic] = now, self._ask(topic)
        return known[1]

    def _ask(self, topic: str) -> bool:
        """Return whether every offset that the group committed in the topic has a commit that says `origin`."""
        partitions = describe_topic(self._client, topic).partitions
        answers = committed_offsets(self._kafka, self._group, [(topic, each) for each in range(partitions)])
        said = [decode_metadata(answer.metadata, answer.offset) for answer in answers if answer.offset >= 0]
        return bool(said) and all(each is not None and each.redeliver_to == "origin" for each in said)


class _Readers:
    """Asks for the members of a group, at most every `READERS_S`."""

    def __init__(self, settings: Settings, group: str, clock: Clock) -> None:
        self._settings = settings
        self._group = group
        self._clock = clock
        self._known: Readers | None = None
        self._ask_at = 0.0

    def __call__(self) -> Readers:
        now = self._clock.monotonic()
        if self._known is None or now >= self._ask_at:
            found = describe_group(self._settings.kafka, self._group)
            held = [place for places in (*found.held.values(), *found.due.values()) for place in places]
            self._known = Readers(bool(found.hosts), frozenset(topic for topic, _ in held))
            self._ask_at = now + READERS_S
        return self._known
