"""Puts the dead letters of a job into categories by the exact marks; the same for a dry run and for the run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cache, partial
from itertools import islice
from typing import Final, NamedTuple

from wait_registry.kafka.clients import Admin
from wait_registry.kafka.cluster import cluster_id, describe_topic
from wait_registry.kafka.commit_metadata import decode_metadata
from wait_registry.kafka.committed_offsets import committed_offsets
from wait_registry.kafka.fenced_producer import ToSend
from wait_registry.kafka.group_description import describe_group
from wait_registry.kafka.targets import Targets
from wait_registry.records.operation import Kind, Place, Requested
from wait_registry.settings.kafka import KafkaSettings
from wait_registry.settings.tree import Settings
from waitreg.redrive.edit import replaced
from waitreg.redrive.exact_marks import ExactMarks
from waitreg.redrive.job_decision import DONE, Candidate, Category, Contents, obstacle
from waitreg.redrive.target import Route

# The dead letters that are classified together; the last one may be beyond the bytes.
CHUNK: Final = 2_000
CHUNK_BYTES: Final = 4_194_304


class Decision(NamedTuple):
    """The category of a dead letter, and the record that is sent for it, if its contents were read."""

    candidate: Candidate
    category: Category
    ready: ToSend | None = None


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

    def __init__(self, settings: Settings, job: Requested, client: Admin) -> None:
        """Classify nothing yet."""
        self._job = job
        self._max_redrives = settings.redrive.max_redrives
        self._targets = Targets(client)
        self._readers = cache(partial(_readers, settings.kafka, job.group))
        self._knows_again = cache(partial(_knows_again, settings.kafka, client, job.group))
        may_wait = Category.NO_MEMBERS in job.allowed
        self.route = Route(job.target, self._targets, self._readers, self._knows_again, may_wait)
        self.cluster = cluster_id(client)

    def forget(self) -> None:
        """Have topics, the group's members and its commits asked for again; until then, each is asked for once."""
        self._targets.forget()
        self.route.forget()
        self._readers.cache_clear()
        self._knows_again.cache_clear()

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
        obstacles = [self._obstacle(candidate, marks, refused) for candidate in candidates]
        found = list(zip(candidates, obstacles, strict=True))
        read = [candidate for candidate, obstacle in found if obstacle is None and self._reads(candidate, sends)]
        rows = marks.tables.contents(read) if read else {}
        return [self._decision(each, obstacle, rows.get(each.place), seen) for each, obstacle in found]

    def _obstacle(self, candidate: Candidate, marks: ExactMarks, refused: Collection[Place]) -> Category | None:
        found = obstacle(candidate, marks.standing(candidate), self._job, self._max_redrives)
        if found is not None or self._job.kind is not Kind.REDRIVE:
            return found
        return Category.REFUSED if candidate.place in refused else self.route.obstacle(candidate)

    def _reads(self, candidate: Candidate, sends: bool) -> bool:
        if self._job.kind is not Kind.REDRIVE:
            return False
        return sends or self._job.replacement is not None or not self.route.surely_fits(candidate)

    def _decision(self, candidate: Candidate, found: Category | None, row: Contents | None, seen: set[str]) -> Decision:
        if found is None and candidate.wait_id in seen:
            found = Category.SAME_DELIVERY
        if found is not None:
            return Decision(candidate, found)
        ready = None if row is None else self._ready(candidate, row)
        if isinstance(ready, Category):
            return Decision(candidate, ready)
        seen.add(candidate.wait_id or "")
        return Decision(candidate, DONE[self._job.kind], ready)

    def _ready(self, candidate: Candidate, row: Contents) -> ToSend | Category:
        edited = replaced(row, self._job, self.cluster)
        if edited is None:
            return Category.CHANGED
        return self.route.ready(candidate, edited, fits=edited is row and self.route.surely_fits(candidate))


def _knows_again(kafka: KafkaSettings, client: Admin, group: str, topic: str) -> bool:
    """Return whether every offset that a group committed in an input topic has a commit that says `origin`."""
    partitions = describe_topic(client, topic).partitions
    answers = committed_offsets(kafka, group, [(topic, each) for each in range(partitions)])
    said = [decode_metadata(answer.metadata, answer.offset) for answer in answers if answer.offset >= 0]
    return bool(said) and all(each is not None and each.redeliver_to == "origin" for each in said)


def _readers(kafka: KafkaSettings, group: str) -> frozenset[str] | None:
    found = describe_group(kafka, group)
    held = [place for places in (*found.held.values(), *found.due.values()) for place in places]
    return frozenset(topic for topic, _ in held) if found.hosts else None
