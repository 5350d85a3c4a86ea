"""Puts the dead letters of a job into categories by the exact marks; the same for a dry run and for the run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from wait_registry.clock import Clock
from wait_registry.kafka.clients import Admin
from wait_registry.kafka.cluster import cluster_id, describe_topic
from wait_registry.kafka.commit_metadata import decode_metadata
from wait_registry.kafka.committed_offsets import committed_offsets
from wait_registry.kafka.group_description import describe_group
from wait_registry.kafka.targets import Targets
from wait_registry.records.operation import Kind, Place, Requested
from wait_registry.settings.tree import Settings
from waitreg.redrive.category import DONE, Candidate, Category, Rules, obstacle
from waitreg.redrive.edit import replaced
from waitreg.redrive.exact_marks import ExactMarks
from waitreg.redrive.target import Readers, Ready, Route

READERS_S: Final = 30.0
# The dead letters that are classified together; the last one may be beyond the bytes.
CHUNK: Final = 500
CHUNK_BYTES: Final = 4_194_304


class Decision(NamedTuple):
    """The category of a dead letter, and the record that is sent for it, if its contents were read."""

    candidate: Candidate
    category: Category
    ready: Ready | None = None


def next_candidates(candidates: Iterator[Candidate], most: int) -> list[Candidate]:
    """Return the next dead letters: no more than this number, and not too many bytes."""
    found, size = [], 0
    for candidate in islice(candidates, most):
        found.append(candidate)
        size += candidate.most_bytes
        if size >= CHUNK_BYTES:
            break
    return found


class Classifier:
    """Classifies the dead letters of one job."""

    def __init__(self, settings: Settings, job: Requested, client: Admin, clock: Clock) -> None:
        """Classify nothing yet."""
        self._rules = Rules(job.kind, job.job, frozenset(job.allowed), settings.redrive.max_redrives)
        self._done = DONE[job.kind]
        self._job = job
        may_wait = Category.NO_MEMBERS in job.allowed
        readers, proof = _Readers(settings, job.group, clock), _Proof(settings, job.group, client, clock)
        self._targets = Targets(client)
        self.route = Route(job.target, self._targets, readers, proof, may_wait)
        self.cluster = cluster_id(client)

    def forget_topics(self) -> None:
        """Look the topics that records go to up again."""
        self._targets.forget()

    def decide(
        self,
        candidates: Sequence[Candidate],
        marks: ExactMarks,
        seen: set[str],
        refused: Collection[Place] = (),
        *,
        sends: bool,
    ) -> list[Decision]:
        """Classify dead letters.

        Args:
            candidates: the dead letters.
            marks: read to the end of the operations topic; its tables give the contents.
            seen: wait IDs of those that came before them and are sent; theirs are added.
            refused: where the broker has refused the record.
            sends: whether the contents of all that is to be sent are read, and not only where these decide.
        """
        obstacles = {candidate.place: self._obstacle(candidate, marks, refused) for candidate in candidates}
        free = [candidate for candidate in candidates if obstacles[candidate.place] is None]
        read = [candidate for candidate in free if self._reads(candidate, sends)]
        rows = marks.tables.contents(read) if read else {}
        return [self._decision(each, obstacles[each.place], rows.get(each.place), seen) for each in candidates]

    def _obstacle(self, candidate: Candidate, marks: ExactMarks, refused: Collection[Place]) -> Category | None:
        found = obstacle(candidate, marks.standing(candidate), self._rules)
        if found is not None or self._rules.kind is not Kind.REDRIVE:
            return found
        return Category.REFUSED if candidate.place in refused else self.route.obstacle(candidate)

    def _reads(self, candidate: Candidate, sends: bool) -> bool:
        if self._rules.kind is not Kind.REDRIVE:
            return False
        return sends or self._job.replacement is not None or not self.route.surely_fits(candidate)

    def _decision(
        self, candidate: Candidate, found: Category | None, row: Mapping[str, Any] | None, seen: set[str]
    ) -> Decision:
        if found is None and candidate.wait_id in seen:
            found = Category.SAME_DELIVERY
        if found is not None:
            return Decision(candidate, found)
        ready = None if row is None else self._ready(candidate, row)
        if isinstance(ready, Category):
            return Decision(candidate, ready)
        seen.add(candidate.wait_id or "")
        return Decision(candidate, self._done, ready)

    def _ready(self, candidate: Candidate, row: Mapping[str, Any]) -> Ready | Category:
        edited = replaced(row, self._job, self.cluster)
        return Category.CHANGED if edited is None else self.route.ready(candidate, edited)


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
