"""What was promised against what happened, judged from outside: published records, the downstream's own log, the dead
letters as an independent read_committed consumer sees them, and the wait topic's whole log.

One reconciliation is about one consumer group. Nothing in it trusts a count that a service made of itself.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

from waitreg.calls import ABORTED, Call
from waitreg.fingerprint import Fingerprint
from waitreg.manifest import Published

Coordinates = tuple[str, int, int]

EXPIRED = "expired"
DISCARDED = "discarded"
EMPTY_BODY = sha256(b"").hexdigest()
SHOWN_PROBLEMS = 20
# Between the downstream's answer and the tombstone in the log lie milliseconds, or a busy machine's hiccup.
TOMBSTONE_MS = 2000


@dataclass(frozen=True, slots=True)
class WaitEntry:
    """One entry of the wait topic: a registration (``original`` set) or a tombstone (``outcome``, when readable)."""

    partition: int
    offset: int
    append_ms: int
    wait_id: str
    original: Coordinates | None
    outcome: str | None = None


@dataclass(frozen=True, slots=True)
class DeadLetterSeen:
    """One dead letter, with the original cut out of it; ``time_ms`` is when it was dead-lettered."""

    original: Coordinates
    timestamp_ms: int
    reason: str
    wait_id: str
    registration: tuple[int, int] | None
    time_ms: int
    fingerprint: Fingerprint


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known from outside about one group.

    ``view`` is the ids standing in Postgres, None when not looked at. ``kills_ms`` is when processors of the group were
    killed (ms since the epoch), None when nobody knows; a processor paused beyond its records' expiry counts as killed.
    """

    published: Sequence[Published]
    calls: Sequence[Call]
    dead_letters: Sequence[DeadLetterSeen]
    wait_log: Sequence[WaitEntry]
    view: Collection[str] | None = None
    kills_ms: Sequence[int] | None = None


class Breach(StrEnum):
    """The ways in which a promise can be broken.

    LOST (P1): neither done nor dead-lettered nor discarded nor standing in the wait topic.
    DOUBLED (P4): one registration has more than one ``expired`` dead letter.
    UNPAIRED (P4): an ``expired`` dead letter without its tombstone, such a tombstone without its dead letter, or a
    dead letter of a registration that is not in the log.
    FALSELY_EXPORTED (P3): a later entry of its id stood in the wait topic when the dead letter was made. One appended
    while the export was on its way is no breach: the tail had been read before.
    CHANGED (P5): key, value, headers or timestamp are not those published, or no such record was published.
    FORGOTTEN (P4): a record's call succeeded and its registration expired all the same, and no kill between the answer
    and its tombstone explains it. Looked for only where the moments of the kills are known.
    VIEW_DIFFERS (P6): Postgres and the wait topic disagree about what stands, once the sink has caught up.
    """

    LOST = "lost"
    DOUBLED = "doubled"
    UNPAIRED = "unpaired"
    FALSELY_EXPORTED = "falsely exported"
    CHANGED = "changed"
    FORGOTTEN = "forgotten"
    VIEW_DIFFERS = "view differs"


@dataclass(frozen=True, slots=True)
class Problem:
    """One breach and the record or registration it is about."""

    breach: Breach
    about: str


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """Where every published record ended; the first six after ``published`` add up to it.

    ``done_and_dead_lettered`` is no breach: a crash between the downstream's answer and the tombstone leaves both (at
    least once), see ``Breach.FORGOTTEN``. Nor is ``handled_again``: records whose call succeeded more than once.
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

    @property
    def ok(self) -> bool:
        """Return whether every promise was kept."""
        return not any(self.breaches.values())

    @property
    def finished(self) -> bool:
        """Return whether nothing is left standing in the wait topic."""
        return self.waiting == 0


def reconcile(evidence: Evidence) -> Reconciliation:
    """Return where every published record ended, and every breach found."""
    published = {record.coordinates: record for record in evidence.published}
    topics = {topic for topic, _, _ in published}
    log = _Log(evidence.wait_log, topics)
    dead_letters = [letter for letter in evidence.dead_letters if letter.original[0] in topics]
    expired = [letter for letter in dead_letters if letter.reason == EXPIRED]
    done = _successes(evidence.calls)
    dead = {letter.original for letter in dead_letters}
    ends = Counter(_end(record, done, dead, log) for record in published)
    problems = [
        *(Problem(Breach.LOST, _name(record)) for record in published if _end(record, done, dead, log) == "lost"),
        *_doubled(expired),
        *_unpaired(expired, log),
        *(Problem(Breach.FALSELY_EXPORTED, _story(letter)) for letter in expired if log.resolved_before(letter)),
        *_changed(published, topics, dead_letters, evidence.calls),
        *_forgotten(expired, log, evidence),
        *_view_differences(evidence.view, log),
    ]
    counts = Counter(problem.breach for problem in problems)
    return Reconciliation(
        published=len(published),
        done=ends["done"],
        dead_lettered=ends["dead_lettered"],
        done_and_dead_lettered=ends["both"],
        discarded=ends["discarded"],
        waiting=ends["waiting"],
        lost=ends["lost"],
        handled_again=sum(1 for record in published if done[record] > 1),
        breaches={breach: counts[breach] for breach in Breach},
        problems=tuple(problems[:SHOWN_PROBLEMS]),
    )


class _Log:
    """The wait topic's log, by id, narrowed to records of the published topics."""

    def __init__(self, entries: Iterable[WaitEntry], topics: Collection[str]) -> None:
        by_id: dict[str, list[WaitEntry]] = defaultdict(list)
        for entry in sorted(entries, key=lambda entry: (entry.partition, entry.offset)):
            by_id[entry.wait_id].append(entry)
        self.by_id = {
            wait_id: history
            for wait_id, history in by_id.items()
            if any(entry.original is not None and entry.original[0] in topics for entry in history)
        }
        self.standing_ids = {wait_id for wait_id, history in self.by_id.items() if _stands(history)}
        self.standing = self._originals(self.standing_ids)
        self.discarded = self._originals(
            wait_id for wait_id, history in self.by_id.items() if any(entry.outcome == DISCARDED for entry in history)
        )

    def _originals(self, wait_ids: Iterable[str]) -> set[Coordinates]:
        return {entry.original for wait_id in wait_ids for entry in self.by_id[wait_id] if entry.original is not None}

    def registration(self, letter: DeadLetterSeen) -> WaitEntry | None:
        """Return the entry that a dead letter names."""
        for entry in self.by_id.get(letter.wait_id, ()):
            if entry.original is not None and (entry.partition, entry.offset) == letter.registration:
                return entry
        return None

    def export_tombstone(self, registered: WaitEntry) -> WaitEntry | None:
        """Return the tombstone that the sweeper wrote for a registration."""
        for entry in self.by_id[registered.wait_id]:
            if entry.outcome == EXPIRED and _follows(registered, entry):
                return entry
        return None

    def belongs_elsewhere(self, answered_ms: int, registered: WaitEntry) -> bool:
        """Return whether a call that succeeded then was made for an earlier or a later registration of the id."""
        history = self.by_id[registered.wait_id]
        later = any(_answered_for_another(entry, registered, answered_ms) for entry in history)
        return later or answered_ms < registered.append_ms

    def resolved_before(self, letter: DeadLetterSeen) -> bool:
        """Return whether a later entry of the id stood in the topic when the dead letter was made."""
        registered = self.registration(letter)
        own = registered and self.export_tombstone(registered)
        if registered is None or own is None:
            return False
        return any(
            entry.append_ms < letter.time_ms and _between(registered, entry, own)
            for entry in self.by_id[letter.wait_id]
        )


def _follows(registered: WaitEntry, entry: WaitEntry) -> bool:
    return entry.partition == registered.partition and entry.offset > registered.offset


def _answered_for_another(entry: WaitEntry, registered: WaitEntry, answered_ms: int) -> bool:
    return entry.original is not None and _follows(registered, entry) and entry.append_ms <= answered_ms


def _between(registered: WaitEntry, entry: WaitEntry, own: WaitEntry) -> bool:
    if entry.partition == registered.partition:
        return registered.offset < entry.offset < own.offset
    # An id in two partitions is a fault of its own; only the broker's clock orders the two.
    return registered.append_ms <= entry.append_ms


def _stands(history: Sequence[WaitEntry]) -> bool:
    last = {entry.partition: entry for entry in history}
    return any(entry.original is not None for entry in last.values())


def _end(record: Coordinates, done: Mapping[Coordinates, int], dead: Collection[Coordinates], log: _Log) -> str:
    if record in done:
        return "both" if record in dead else "done"
    if record in dead:
        return "dead_lettered"
    if record in log.discarded:
        return "discarded"
    return "waiting" if record in log.standing else "lost"


def _successes(calls: Iterable[Call]) -> Counter[Coordinates]:
    return Counter(coordinates for call in calls if call.succeeded and (coordinates := _coordinates(call)))


def _coordinates(call: Call) -> Coordinates | None:
    if call.topic is None or call.partition is None or call.offset is None:
        return None
    return (call.topic, call.partition, call.offset)


def _doubled(expired: Iterable[DeadLetterSeen]) -> Iterator[Problem]:
    copies = Counter((letter.wait_id, letter.registration) for letter in expired)
    for (wait_id, registration), count in copies.items():
        for _ in range(count - 1):
            yield Problem(Breach.DOUBLED, f"wait {wait_id} registered at {registration} has {count} dead letters")


def _unpaired(expired: Sequence[DeadLetterSeen], log: _Log) -> Iterator[Problem]:
    letters = Counter(letter.wait_id for letter in expired)
    tombstones = Counter(
        {wait_id: sum(1 for entry in history if entry.outcome == EXPIRED) for wait_id, history in log.by_id.items()}
    )
    for wait_id in sorted(letters.keys() | tombstones.keys()):
        if letters[wait_id] != tombstones[wait_id]:
            about = f"wait {wait_id}: {letters[wait_id]} expired dead letters, {tombstones[wait_id]} expired tombstones"
            yield Problem(Breach.UNPAIRED, about)
    for letter in expired:
        if log.registration(letter) is None:
            yield Problem(Breach.UNPAIRED, f"{_story(letter)}: no registration at {letter.registration}")


def _changed(
    published: Mapping[Coordinates, Published],
    topics: Collection[str],
    dead_letters: Iterable[DeadLetterSeen],
    calls: Iterable[Call],
) -> Iterator[Problem]:
    for letter in dead_letters:
        record = published.get(letter.original)
        if record is None:
            yield Problem(Breach.CHANGED, f"{_story(letter)}: no such record was published")
        elif difference := _difference(record, letter):
            yield Problem(Breach.CHANGED, f"{_story(letter)}: {difference} differs from what was published")
    for call in calls:
        coordinates = _coordinates(call)
        if coordinates is None or coordinates[0] not in topics or call.status == ABORTED:
            continue
        record = published.get(coordinates)
        if record is None or call.body_sha256 != (record.fingerprint.value or EMPTY_BODY):
            yield Problem(Breach.CHANGED, f"{_name(coordinates)}: the downstream got another body than was published")


def _difference(record: Published, letter: DeadLetterSeen) -> str:
    for part in ("key", "value", "headers"):
        if getattr(record.fingerprint, part) != getattr(letter.fingerprint, part):
            return part
    return "" if record.timestamp_ms == letter.timestamp_ms else "timestamp"


def _forgotten(expired: Iterable[DeadLetterSeen], log: _Log, evidence: Evidence) -> Iterator[Problem]:
    if evidence.kills_ms is None:
        return
    answers: dict[Coordinates, list[int]] = defaultdict(list)
    for call in evidence.calls:
        if call.succeeded and (coordinates := _coordinates(call)):
            answers[coordinates].append(call.finished_ms)
    for letter in expired:
        registered = log.registration(letter)
        if registered is None:
            continue
        for answered_ms in answers[letter.original]:
            killed = any(0 <= kill_ms - answered_ms <= TOMBSTONE_MS for kill_ms in evidence.kills_ms)
            if not killed and not log.belongs_elsewhere(answered_ms, registered):
                yield Problem(Breach.FORGOTTEN, f"{_story(letter)}: its call had succeeded, and no kill explains it")


def _view_differences(view: Collection[str] | None, log: _Log) -> Iterator[Problem]:
    if view is None:
        return
    for wait_id in sorted(log.standing_ids - set(view)):
        yield Problem(Breach.VIEW_DIFFERS, f"wait {wait_id} stands in the wait topic but not in Postgres")
    for wait_id in sorted((set(view) & log.by_id.keys()) - log.standing_ids):
        yield Problem(Breach.VIEW_DIFFERS, f"wait {wait_id} stands in Postgres but is resolved in the wait topic")


def _name(record: Coordinates) -> str:
    return f"{record[0]}/{record[1]}@{record[2]}"


def _story(letter: DeadLetterSeen) -> str:
    return f"dead letter of {_name(letter.original)} (wait {letter.wait_id})"
