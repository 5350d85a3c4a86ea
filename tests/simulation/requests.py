"""What a simulated process has sent, and what hasn't come back to it yet: each queue keeps its order."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from random import Random

from processor.protocol.effects import Commit, Register, Release
from processor.protocol.events import (
    CommitAnswered,
    DeadLetterRefused,
    Event,
    Published,
    Registered,
    RegistrationRefused,
    RetryRefused,
)
from processor.protocol.record import Entry
from tests.simulation.messages import Dead, Letter, letter_of, outcome_of, taken
from tests.simulation.world import Committed, Nature, WaitEntry, World
from wait_registry.records.topics import TopicPartition

BATCHES = (Published, Registered)
Generations = Mapping[TopicPartition, int]


class Requests:
    """The requests of one process. Each method without arguments is a step of the scheduler.

    Args:
        process: its number.
        world: takes them.
        random: loses answers.
    """

    def __init__(self, process: int, world: World, random: Random) -> None:
        self._process = process
        self._world = world
        self._random = random
        # Sent and not yet in the broker's logs, in order; then reports on their way back.
        self.waits: deque[tuple[Entry, WaitEntry]] = deque()
        self.letters: deque[tuple[Entry, Letter]] = deque()
        self.reports: deque[Event] = deque()
        # With the generations of the group in which they were sent.
        self.commits: deque[tuple[Commit, Generations]] = deque()
        self.answers: deque[Event] = deque()
        self.kept_below: dict[TopicPartition, int | None] = {}

    def pending(self) -> bool:
        """Return whether anything is on its way."""
        return bool(self.waits or self.letters or self.reports or self.commits or self.answers)

    # ---- the process sends

    def register(self, effect: Register) -> None:
        """Send wait records."""
        for entry in effect.entries:
            self.waits.append((entry, WaitEntry(*taken(entry)[:2], None, self._process, effect.lifetime.expires_at_ms)))

    def write_tombstones(self, entries: Sequence[Entry]) -> None:
        """Send tombstones."""
        self.waits.extend((entry, WaitEntry(*taken(entry)[:2], outcome_of(entry), self._process)) for entry in entries)

    def publish(self, entries: Sequence[Entry]) -> None:
        """Send dead letters and retry records."""
        self.letters.extend((entry, letter_of(entry)) for entry in entries)

    def release(self, effect: Release, generations: Generations, lost: float) -> CommitAnswered:
        """Commit synchronously.

        Args:
            effect: the last commit of partitions that are given up.
            generations: of the group, as the process knows them.
            lost: how likely it is that the answer is lost.
        """
        confirmed = self._commit(effect, generations)
        if lost and self._random.random() < lost:
            confirmed = {}
        return CommitAnswered(confirmed, [place for place in effect.offsets if place not in confirmed], effect)

    # ---- the broker takes it, and answers

    def append(self) -> None:
        """The broker appends the wait record or tombstone that was sent first."""
        entry, written = self.waits.popleft()
        if written.outcome is None and self._world.nature(written.record) is Nature.TOO_LARGE:
            self.reports.append(RegistrationRefused(entry))
            return
        if written.outcome is None and taken(entry).generation != self._world.generation[entry.partition.place]:
            self._world.may_be_left.add(written.record)
            self._world.registered_late.add(written.record)
        self._world.append(written)
        if written.outcome is None:
            self.reports.append(Registered([entry]))

    def append_letter(self, now_ms: int) -> None:
        """The broker appends the dead letter or retry record that was sent first, unless it is too large."""
        entry, letter = self.letters.popleft()
        if letter.retry and letter.record[2] % 5 == 4:
            self.reports.append(RetryRefused(entry, ValueError("too large")))
            return
        if not letter.retry and self._world.refuses_letters and self._random.random() < 0.5:
            self.reports.append(DeadLetterRefused(entry))
            return
        letter.arrive(self._world, now_ms)
        self.reports.append(Published([entry]))

    def commit(self) -> None:
        """The coordinator takes the commit that is on its way; its answer may be lost."""
        commit, generations = self.commits.popleft()
        confirmed = self._commit(commit, generations)
        failed = [place for place in commit.offsets if place not in confirmed]
        if self._random.random() < 0.1:
            confirmed, failed = {}, list(commit.offsets)
        self.answers.append(CommitAnswered(confirmed, failed))

    def _commit(self, commit: Commit | Release, generations: Generations) -> dict[TopicPartition, int]:
        confirmed = {}
        for place, offset in commit.offsets.items():
            bound, mode = commit.recorded[place] if self._world.metadata else (None, None)
            said = Committed(offset, bound, mode, self._world.metadata, self.kept_below.get(place))
            if self._world.commit(generations.get(place, 0), place, said):
                confirmed[place] = offset
        return confirmed

    # ---- the client passes it on

    def report(self) -> Event:
        """Return the next delivery reports, one or all that are alike."""
        report = self.reports.popleft()
        if isinstance(report, BATCHES) and self._random.random() < 0.5:
            entries = list(report.entries)
            while self.reports and type(self.reports[0]) is type(report):
                entries += self.reports.popleft().entries  # type: ignore[union-attr]
            report = type(report)(entries)
        return report

    def die(self) -> Dead:
        """Return what may still arrive of what was sent."""
        return Dead((deque(written for _, written in self.waits), deque(letter for _, letter in self.letters)))

    def leave(self) -> None:
        """Note that nothing cares any more for what was sent."""
        self._world.may_be_left.update(written.record for _, written in self.waits)
