"""What was promised against what happened, judged from outside: published records, the downstream's own log, the dead
letters as an independent read_committed consumer sees them, and the wait topic's whole log.

One reconciliation is about one consumer group. It trusts no count that a service made of itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from wait_registry.errors import ConfigurationError
from waitreg.downstream.calls import Call
from waitreg.load.manifest import Coordinates, Published
from waitreg.reconcile import breaches
from waitreg.reconcile.breaches import Breach, Problem
from waitreg.reconcile.wait_log import DeadLetterSeen, WaitEntry, WaitLog

EXPIRED = "expired"
SHOWN_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known from outside about one group.

    ``tables`` is the IDs in Postgres, None when not looked at. ``kills_ms`` is when processors of the group were killed
    (ms since the epoch), None when unknown; a processor paused beyond its records' expiry counts as killed.
    ``wait_ids`` has the IDs of the published records, by which a tombstone is known after compaction removed its
    registration.
    """

    published: Sequence[Published]
    calls: Sequence[Call]
    dead_letters: Sequence[DeadLetterSeen]
    wait_log: Sequence[WaitEntry]
    tables: Collection[str] | None = None
    kills_ms: Sequence[int] | None = None
    wait_ids: Mapping[Coordinates, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """Where every published record ended; the first six after ``published`` add up to it.

    ``done_and_dead_lettered`` is no breach: a crash between the downstream's answer and the tombstone leaves both (at
    least once), see ``Breach.FORGOTTEN``. Nor is ``handled_again``: records whose call succeeded more than once.
    ``not_looked_for`` are the breaches for which the evidence is missing.
    """

    published: int
    done: int
    dead_lettered: int
    done_and_dead_lettered: int
    discarded: int
    waiting: int
    lost: int
    handled_again: int
    breaches: Mapping[Breach, int]
    problems: tuple[Problem, ...]
    not_looked_for: frozenset[Breach] = frozenset()

    @property
    def ok(self) -> bool:
        """Return whether no guarantee was seen broken."""
        return not any(self.breaches.values())

    @property
    def finished(self) -> bool:
        """Return whether no record is left registered in the wait topic."""
        return self.waiting == 0


def reconcile(evidence: Evidence) -> Reconciliation:
    """Return where every published record ended, and every breach found.

    Raises:
        ConfigurationError: compaction removed entries of the wait topic without which an end can't be judged.
    """
    published = {record.coordinates: record for record in evidence.published}
    topics = {topic for topic, _, _ in published}
    dead_letters = [dead_letter for dead_letter in evidence.dead_letters if dead_letter.original[0] in topics]
    named = {dead_letter.wait_id for dead_letter in dead_letters}
    log = WaitLog(evidence.wait_log, topics, wait_ids=evidence.wait_ids, named=named)
    successes = Counter(call.coordinates for call in evidence.calls if call.succeeded)
    dead = {dead_letter.original for dead_letter in dead_letters}
    end_of = {place: _end(place, place in successes, place in dead, log) for place in published}
    ends = Counter(end_of.values())
    expired = [dead_letter for dead_letter in dead_letters if dead_letter.reason == EXPIRED]
    compacted = [
        breaches.described_dead_letter(dead_letter) for dead_letter in expired if log.was_compacted(dead_letter)
    ]
    _require_whole([*compacted, *(breaches.described(place) for place, end in end_of.items() if end == "unseen")])
    lost = [Problem(Breach.LOST, breaches.described(place)) for place, end in end_of.items() if end == "lost"]
    changed = breaches.changed(published, dead_letters, evidence.calls)
    problems = [*lost, *changed, *_broken_exports(evidence, expired, log)]
    counts = Counter(problem.breach for problem in problems)
    lacking = {Breach.FORGOTTEN: evidence.kills_ms, Breach.TABLES_DIFFER: evidence.tables}
    return Reconciliation(
        published=ends.total(),
        done=ends["done"],
        dead_lettered=ends["dead_lettered"],
        done_and_dead_lettered=ends["both"],
        discarded=ends["discarded"],
        waiting=ends["waiting"],
        lost=ends["lost"],
        handled_again=sum(successes[place] > 1 for place in published),
        breaches={breach: counts[breach] for breach in Breach},
        problems=tuple(problems[:SHOWN_PROBLEMS]),
        not_looked_for=frozenset(breach for breach, needed in lacking.items() if needed is None),
    )


def _broken_exports(evidence: Evidence, expired: Sequence[DeadLetterSeen], log: WaitLog) -> Iterator[Problem]:
    yield from breaches.doubled(expired)
    yield from breaches.unpaired(expired, log)
    yield from breaches.falsely_exported(expired, log)
    yield from breaches.forgotten(expired, evidence.calls, evidence.kills_ms, log)
    yield from breaches.table_differences(evidence.tables, log)


def _require_whole(unknown: Sequence[str]) -> None:
    if unknown:
        raise ConfigurationError(
            f"compaction has removed wait records that {len(unknown)} ends depend on, for instance {unknown[0]}: the "
            "evidence is too old. Start again with another input topic and another manifest, and reconcile within "
            "wait.segment_ms of the load"
        )


def _end(place: Coordinates, done: bool, dead: bool, log: WaitLog) -> str:
    if done:
        return "both" if dead else "done"
    if dead:
        return "dead_lettered"
    if place in log.discarded:
        return "discarded"
    if place in log.registered:
        return "waiting"
    return "unseen" if log.continues_unseen(place) else "lost"
