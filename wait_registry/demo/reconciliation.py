"""What was promised against what happened, judged from outside: published records, the downstream's own log, the dead
letters as an independent read_committed consumer sees them, and the wait topic's whole log.

One reconciliation is about one consumer group. Nothing in it trusts a count that a service made of itself.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256

from wait_registry.demo.calls import ABORTED, Call
from wait_registry.demo.dead_letter_seen import DeadLetterSeen
from wait_registry.demo.manifest import Coordinates, Published
from wait_registry.demo.pairing import pair
from wait_registry.demo.wait_log import WaitEntry, WaitLog

EXPIRED = "expired"
EMPTY_BODY = sha256(b"").hexdigest()
SHOWN_PROBLEMS = 20
# Between the downstream's answer and the tombstone in the log lie milliseconds, or a busy machine's hiccup.
TOMBSTONE_MS = 2000


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known from outside about one group.

    ``view`` is the ids standing in Postgres, None when not looked at. ``kills_ms`` is when processors of the group were
    killed (ms since the epoch), None when unknown; a processor paused beyond its records' expiry counts as killed.
    ``wait_ids`` has the ids of the published records, by which a tombstone is known whose registration was compacted
    away. A tombstone appended at ``kept_since_ms`` or later still stands; None when compaction never took one.
    """

    published: Sequence[Published]
    calls: Sequence[Call]
    dead_letters: Sequence[DeadLetterSeen]
    wait_log: Sequence[WaitEntry]
    view: Collection[str] | None = None
    kills_ms: Sequence[int] | None = None
    wait_ids: Mapping[Coordinates, str] = field(default_factory=dict)
    kept_since_ms: int | None = None


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
    """Where every published record ended; the first six after ``published``, and ``gone``, add up to it.

    ``done_and_dead_lettered`` is no breach: a crash between the downstream's answer and the tombstone leaves both (at
    least once), see ``Breach.FORGOTTEN``. Nor is ``handled_again``: records whose call succeeded more than once.
    ``unjudged`` counts possible breaches that can't be decided, since compaction removed their entries from the wait
    topic. ``not_looked_for`` are the breaches for which the evidence is missing.
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
    unjudged: Mapping[Breach, int] = field(default_factory=dict)
    not_looked_for: frozenset[Breach] = frozenset()

    @property
    def ok(self) -> bool:
        """Return whether no promise was seen broken."""
        return not any(self.breaches.values())

    @property
    def gone(self) -> int:
        """Return how many records have an end that only the wait topic knew, and knows no longer."""
        return self.unjudged.get(Breach.LOST, 0)

    @property
    def whole(self) -> bool:
        """Return whether the log still had an end for every record and a tombstone for every export."""
        return not self.gone and not self.unjudged.get(Breach.UNPAIRED, 0)

    @property
    def finished(self) -> bool:
        """Return whether nothing is left standing in the wait topic."""
        return self.waiting == 0


def reconcile(evidence: Evidence) -> Reconciliation:
    """Return where every published record ended, and every breach found."""
    published = {record.coordinates: record for record in evidence.published}
    topics = {topic for topic, _, _ in published}
    dead_letters = [letter for letter in evidence.dead_letters if letter.original[0] in topics]
    log = _log_of(evidence, topics, dead_letters)
    expired = [letter for letter in dead_letters if letter.reason == EXPIRED]
    done = _successes(evidence.calls)
    dead = {letter.original for letter in dead_letters}
    end_of = {place: _end(record, done, dead, log) for place, record in published.items()}
    ends = Counter(end_of.values())
    pairing = pair(expired, log)
    suspected = _suspected(expired, evidence)
    problems = [
        *(Problem(Breach.LOST, _name(place)) for place, end in end_of.items() if end == "lost"),
        *_doubled(expired),
        *(Problem(Breach.UNPAIRED, about) for about in pairing.unpaired),
        *(Problem(Breach.FALSELY_EXPORTED, _story(letter)) for letter in expired if log.resolved_before(letter)),
        *_changed(published, topics, dead_letters, evidence.calls),
        *_forgotten(suspected, log),
        *_view_differences(evidence.view, log),
    ]
    unjudged = {
        Breach.LOST: ends["gone"],
        Breach.UNPAIRED: pairing.unjudged,
        Breach.FALSELY_EXPORTED: sum(log.may_have_taken(one) and not log.resolved_before(one) for one in expired),
        Breach.FORGOTTEN: sum(log.may_have_taken(letter) for letter, _ in suspected),
    }
    handled_again = sum(1 for place in published if done[place] > 1)
    return _summary(ends, handled_again, problems, unjudged, _not_looked_for(evidence))


def _summary(
    ends: Counter[str],
    handled_again: int,
    problems: Sequence[Problem],
    unjudged: Mapping[Breach, int],
    not_looked_for: frozenset[Breach],
) -> Reconciliation:
    counts = Counter(problem.breach for problem in problems)
    return Reconciliation(
        published=ends.total(),
        done=ends["done"],
        dead_lettered=ends["dead_lettered"],
        done_and_dead_lettered=ends["both"],
        discarded=ends["discarded"],
        waiting=ends["waiting"],
        lost=ends["lost"],
        handled_again=handled_again,
        breaches={breach: counts[breach] for breach in Breach},
        problems=tuple(problems[:SHOWN_PROBLEMS]),
        unjudged={breach: count for breach, count in unjudged.items() if count},
        not_looked_for=not_looked_for,
    )


def _log_of(evidence: Evidence, topics: Collection[str], dead_letters: Iterable[DeadLetterSeen]) -> WaitLog:
    return WaitLog(
        evidence.wait_log,
        topics,
        wait_ids=evidence.wait_ids,
        named={letter.wait_id for letter in dead_letters},
        kept_since_ms=evidence.kept_since_ms,
    )


def _not_looked_for(evidence: Evidence) -> frozenset[Breach]:
    lacking = {Breach.FORGOTTEN: evidence.kills_ms, Breach.VIEW_DIFFERS: evidence.view}
    return frozenset(breach for breach, needed in lacking.items() if needed is None)


def _end(record: Published, done: Mapping[Coordinates, int], dead: Collection[Coordinates], log: WaitLog) -> str:
    place = record.coordinates
    if place in done:
        return "both" if place in dead else "done"
    if place in dead:
        return "dead_lettered"
    if place in log.discarded:
        return "discarded"
    if place in log.standing:
        return "waiting"
    return "gone" if log.was_compacted_away(record) else "lost"


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


def _suspected(expired: Iterable[DeadLetterSeen], evidence: Evidence) -> Sequence[tuple[DeadLetterSeen, int]]:
    """Return expired dead letters with the moment of a successful call of theirs that no kill followed."""
    if evidence.kills_ms is None:
        return ()
    kills_ms = evidence.kills_ms
    answers: dict[Coordinates, list[int]] = defaultdict(list)
    for call in evidence.calls:
        if call.succeeded and (coordinates := _coordinates(call)):
            answers[coordinates].append(call.finished_ms)
    return [
        (letter, answered_ms)
        for letter in expired
        for answered_ms in answers[letter.original]
        if not any(0 <= kill_ms - answered_ms <= TOMBSTONE_MS for kill_ms in kills_ms)
    ]


def _forgotten(suspected: Iterable[tuple[DeadLetterSeen, int]], log: WaitLog) -> Iterator[Problem]:
    for letter, answered_ms in suspected:
        registered = log.registration(letter)
        if registered is not None and not log.belongs_elsewhere(answered_ms, registered):
            yield Problem(Breach.FORGOTTEN, f"{_story(letter)}: its call had succeeded, and no kill explains it")


def _view_differences(view: Collection[str] | None, log: WaitLog) -> Iterator[Problem]:
    if view is None:
        return
    for wait_id in sorted(log.standing_ids - set(view)):
        yield Problem(Breach.VIEW_DIFFERS, f"wait {wait_id} is in the wait topic but not in Postgres")
    for wait_id in sorted((set(view) & log.by_id.keys()) - log.standing_ids):
        yield Problem(Breach.VIEW_DIFFERS, f"wait {wait_id} is in Postgres but is resolved in the wait topic")


def _name(record: Coordinates) -> str:
    return f"{record[0]}/{record[1]}@{record[2]}"


def _story(letter: DeadLetterSeen) -> str:
    return f"dead letter of {_name(letter.original)} (wait {letter.wait_id})"
