"""Every way in which a reconciliation can find a guarantee broken, a function for each."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

from wait_registry.records.tombstone import Outcome
from waitreg.downstream.calls import ABORTED, Call
from waitreg.load.manifest import Coordinates, Published
from waitreg.reconcile.wait_log import DeadLetterSeen, WaitLog

EMPTY_BODY = sha256(b"").hexdigest()
# Milliseconds pass between the downstream's answer and the tombstone in the log, or a busy machine's hiccup.
TOMBSTONE_MS = 2000


class Breach(StrEnum):
    """The ways in which a guarantee can be broken.

    LOST (P1): neither done nor dead-lettered nor discarded nor registered in the wait topic.
    DOUBLED (P4): one registration has more than one ``expired`` dead letter.
    UNPAIRED (P4): an ``expired`` dead letter without its tombstone, such a tombstone without its dead letter, or a
    dead letter of a registration that is not in the log.
    FALSELY_EXPORTED (P3): the wait topic held a later entry of the ID when the dead letter was made. An entry appended
    while the export was on its way is no breach: the sweeper had read the tail before.
    CHANGED (P5): key, value, headers or timestamp are not those published, or no such record was published.
    FORGOTTEN (P4): a record's call succeeded and its registration expired all the same, and no kill between the answer
    and its tombstone explains that. Looked for only where the times of the kills are known.
    TABLES_DIFFER (P6): Postgres and the wait topic have different registrations, once the sink has caught up.
    """

    LOST = "lost"
    DOUBLED = "doubled"
    UNPAIRED = "unpaired"
    FALSELY_EXPORTED = "falsely exported"
    CHANGED = "changed"
    FORGOTTEN = "forgotten"
    TABLES_DIFFER = "tables differ"


@dataclass(frozen=True, slots=True)
class Problem:
    """One breach and the record or registration that it is about."""

    breach: Breach
    about: str


def doubled(expired: Iterable[DeadLetterSeen]) -> Iterator[Problem]:
    """Return one problem per dead letter beyond the first of a registration."""
    copies = Counter((dead_letter.wait_id, dead_letter.registration) for dead_letter in expired)
    for (wait_id, registration), count in copies.items():
        for _ in range(count - 1):
            yield Problem(Breach.DOUBLED, f"wait {wait_id} registered at {registration} has {count} dead letters")


def unpaired(expired: Iterable[DeadLetterSeen], log: WaitLog) -> Iterator[Problem]:
    """Match the ``expired`` dead letters with the ``expired`` tombstones, by wait ID."""
    dead_letters: dict[str, list[DeadLetterSeen]] = defaultdict(list)
    for dead_letter in expired:
        dead_letters[dead_letter.wait_id].append(dead_letter)
    tombstones = Counter(
        wait_id for wait_id, history in log.by_id.items() for entry in history if entry.outcome == Outcome.EXPIRED
    )
    for wait_id in sorted(dead_letters.keys() | tombstones.keys()):
        own, count = dead_letters.get(wait_id, []), tombstones[wait_id]
        registered = [entry for dead_letter in own if (entry := log.registration(dead_letter)) is not None]
        if len(own) != count or not all(log.export_tombstone(wait_id, entry.place) for entry in registered):
            about = f"wait {wait_id}: {len(own)} expired dead letters, {count} expired tombstones"
            yield Problem(Breach.UNPAIRED, about)
            continue
        for dead_letter in own:
            if log.registration(dead_letter) is None:
                place = dead_letter.registration
                about = f"wait {wait_id}: a dead letter names a registration at {place}, not in the log"
                yield Problem(Breach.UNPAIRED, about)


def falsely_exported(expired: Iterable[DeadLetterSeen], log: WaitLog) -> Iterator[Problem]:
    """Return the dead letters of settled registrations."""
    for dead_letter in expired:
        if log.was_settled_before(dead_letter):
            yield Problem(Breach.FALSELY_EXPORTED, described_dead_letter(dead_letter))


def changed(
    published: Mapping[Coordinates, Published], dead_letters: Iterable[DeadLetterSeen], calls: Iterable[Call]
) -> Iterator[Problem]:
    """Return the dead letters and the calls whose content differs from what was published."""
    topics = {topic for topic, _, _ in published}
    for dead_letter in dead_letters:
        record = published.get(dead_letter.original)
        if record is None:
            yield Problem(Breach.CHANGED, f"{described_dead_letter(dead_letter)}: no such record was published")
        elif difference := _difference(record, dead_letter):
            about = f"{described_dead_letter(dead_letter)}: {difference} differs from what was published"
            yield Problem(Breach.CHANGED, about)
    for call in calls:
        place = call.coordinates
        if place is None or place[0] not in topics or call.status == ABORTED:
            continue
        record = published.get(place)
        if record is None or call.body_sha256 != (record.fingerprint.value or EMPTY_BODY):
            yield Problem(Breach.CHANGED, f"{described(place)}: the downstream got another body than was published")


def _difference(record: Published, dead_letter: DeadLetterSeen) -> str:
    for part in ("key", "value", "headers"):
        if getattr(record.fingerprint, part) != getattr(dead_letter.fingerprint, part):
            return part
    return "" if record.timestamp_ms == dead_letter.timestamp_ms else "timestamp"


def forgotten(
    expired: Iterable[DeadLetterSeen], calls: Iterable[Call], kills_ms: Sequence[int] | None, log: WaitLog
) -> Iterator[Problem]:
    """Return the expired dead letters of calls that had succeeded.

    A kill within two seconds after the answer explains that its tombstone is missing.
    """
    if kills_ms is None:
        return
    answers: dict[Coordinates, list[int]] = defaultdict(list)
    for call in calls:
        if call.succeeded and call.coordinates:
            answers[call.coordinates].append(call.finished_ms)
    for dead_letter in expired:
        registered = log.registration(dead_letter)
        for answered_ms in answers[dead_letter.original]:
            killed = any(0 <= kill_ms - answered_ms <= TOMBSTONE_MS for kill_ms in kills_ms)
            if registered and not killed and not log.belongs_elsewhere(answered_ms, registered):
                about = f"{described_dead_letter(dead_letter)}: its call had succeeded, and no kill explains it"
                yield Problem(Breach.FORGOTTEN, about)


def table_differences(tables: Collection[str] | None, log: WaitLog) -> Iterator[Problem]:
    """Return the registrations that only one of Postgres and the wait topic has."""
    if tables is None:
        return
    for wait_id in sorted(log.registered_ids - set(tables)):
        yield Problem(Breach.TABLES_DIFFER, f"wait {wait_id} is in the wait topic but not in Postgres")
    for wait_id in sorted((set(tables) & log.by_id.keys()) - log.registered_ids):
        yield Problem(Breach.TABLES_DIFFER, f"wait {wait_id} is in Postgres but is settled in the wait topic")


def described(record: Coordinates) -> str:
    """Return topic, partition and offset for a message."""
    return f"{record[0]}/{record[1]}@{record[2]}"


def described_dead_letter(dead_letter: DeadLetterSeen) -> str:
    """Return record and wait ID of a dead letter for a message."""
    return f"dead letter of {described(dead_letter.original)} (wait {dead_letter.wait_id})"
