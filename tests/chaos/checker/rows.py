"""P6: Postgres shows the log exactly as far as sink_progress says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from tests.chaos.checker.changed import changed_rows
from tests.chaos.checker.ledger import Finding, Ledger, about_record
from tests.chaos.history.entries import (
    EXPORTS,
    Place,
    Registration,
    Republished,
    Tombstone,
    TopicRecord,
    Unreadable,
    WaitEntry,
    at,
    clock,
)
from tests.chaos.history.history import DeadLetterRow, Partition, Tables, WaitRow, redelivery_topics
from wait_registry.demo.manifest import Coordinates
from wait_registry.records.dead_letter import Reason
from wait_registry.records.tombstone import Outcome


class Shown:
    """The rows that the tables should have, up to `sink_progress`: a late position is one violation, not many."""

    def __init__(self, ledger: Ledger, tables: Tables) -> None:
        self._ledger = ledger
        self.tables = tables
        self.positions: Mapping[Partition, int] = {
            (one.topic, one.partition): one.next_offset for one in tables.progress
        }
        # The sink doesn't read redelivery topics.
        again = redelivery_topics(ledger.history.settings)
        self.ends = {place: end for place, end in ledger.history.ends.items() if place[0] not in again}

    @cached_property
    def waits(self) -> Mapping[str, Registration]:
        """Registrations that are open at the sink's position, by ID."""
        found: dict[str, Registration] = {}
        for (wait_id, _), entries in self._ledger.entries_of.items():
            last = next((entry for entry in reversed(entries) if self.is_behind(entry)), None)
            if isinstance(last, Registration):
                found[wait_id] = last
        return found

    @cached_property
    def letters(self) -> Mapping[Coordinates, TopicRecord]:
        """Every committed record of the dead letter topics, by its place."""
        return {
            letter.place: letter
            for letter in self._ledger.history.dead_letters
            if letter.committed and letter.offset < self.positions.get((letter.topic, letter.partition), 0)
        }

    @cached_property
    def unreadable(self) -> Mapping[Place, Unreadable]:
        """What can't be read of the wait topic."""
        return {entry.place: entry for entry in self._ledger.unreadable if self.is_behind(entry)}

    def is_behind(self, entry: WaitEntry) -> bool:
        """Return whether the sink has passed an entry of the wait topic."""
        topic = self._ledger.history.settings.wait.topic
        return entry.offset < self.positions.get((topic, entry.partition), 0)

    def must_be_quarantined(self, entry: Unreadable) -> bool:
        """Return whether no later entry of its key can have saved the sink from reading it."""
        later = self._ledger.entries_of.get((entry.wait_id, entry.partition), ())
        return not later or later[-1].offset < entry.offset


def missing_row(ledger: Ledger) -> Iterator[Finding]:
    """Find what is open, was dead-lettered or can't be read, and has no row."""
    if ledger.history.tables is None:
        return
    shown = Shown(ledger, ledger.history.tables)
    waits = {row.wait_id for row in shown.tables.wait}
    for wait_id, entry in shown.waits.items():
        if wait_id not in waits:
            yield ledger.about(wait_id), f"{entry} is open, and has no row"
    rows = {row.record.place for row in shown.tables.dead_letter}
    for place, letter in shown.letters.items():
        if place not in rows:
            yield about_record(letter), f"{letter} has no row"
    quarantined = {row.place[1:] for row in shown.tables.quarantine}
    for where, unreadable in shown.unreadable.items():
        if where not in quarantined and shown.must_be_quarantined(unreadable):
            why = f"{unreadable} ({unreadable.why}) is not in quarantine"
            yield ledger.about(unreadable.wait_id), why
    for (topic, partition), end in shown.ends.items():
        if end and (topic, partition) not in shown.positions:
            why = f"{topic}/{partition} has no row in sink_progress, its end is {end}"
            yield f"{topic}/{partition}", why


def orphan_row(ledger: Ledger) -> Iterator[Finding]:
    """Find rows of what isn't open, isn't committed, or can be read."""
    if ledger.history.tables is None:
        return
    shown = Shown(ledger, ledger.history.tables)
    for row in shown.tables.wait:
        if row.wait_id not in shown.waits:
            why = f"a row in wait shows {row.registration or 'nothing'}, which is not open"
            yield ledger.about(row.wait_id), why
    for letter, *_ in shown.tables.dead_letter:
        if letter.place not in shown.letters:
            why = f"a row in dead_letter shows {at(letter.place)}, where no committed record is"
            yield about_record(letter), why
    for quarantined in shown.tables.quarantine:
        entry, topic = shown.unreadable.get(quarantined.place[1:]), quarantined.place[0]
        if entry is None or topic != ledger.history.settings.wait.topic:
            why = f"a row in quarantine ({quarantined.error}) shows {at(quarantined.place)}, which can be read"
            yield at(quarantined.place), why
    for topic, partition in shown.positions:
        if (topic, partition) not in shown.ends:
            why = f"a row in sink_progress names {topic}/{partition}, which the sink doesn't read"
            yield f"{topic}/{partition}", why


def row_differs(ledger: Ledger) -> Iterator[Finding]:
    """Find rows that differ from their record in anything except its content, which `changed` compares."""
    if ledger.history.tables is None:
        return
    shown = Shown(ledger, ledger.history.tables)
    for row in shown.tables.wait:
        entry = shown.waits.get(row.wait_id)
        if entry is not None and (why := _wait_differs(row, entry)):
            yield ledger.about(row.wait_id), f"the row of {entry}: {why}"
    for letter_row in shown.tables.dead_letter:
        letter = shown.letters.get(letter_row.record.place)
        if letter is not None and (why := _letter_differs(letter_row, letter) or _late(ledger, shown, letter_row)):
            yield about_record(letter), f"the row of {letter}: {why}"
    for place, position in shown.positions.items():
        end = shown.ends.get(place)
        if end is not None and position != end:
            why = f"sink_progress is at {position}, the log's end at {end}"
            yield f"{place[0]}/{place[1]}", why


_COMMON = ("original", "wait_id", "group", "instance", "delivery")
_OF_WAIT = (*_COMMON, "place", "expires_at_ms", "dead_letter_topic", "expiry_policy", "max_deliveries", "source")
_OF_LETTER = (*_COMMON, "reason", "time_ms", "registration", "error_class", "error_message", "error_stacktrace")


def _wait_differs(row: WaitRow, entry: Registration) -> str:
    return row.unreadable if row.registration is None else _compared(row.registration, entry, _OF_WAIT)


def _letter_differs(row: DeadLetterRow, letter: TopicRecord) -> str:
    if row.unreadable:
        return row.unreadable
    if isinstance(row.record, Republished) and isinstance(letter, Republished):
        return _compared(row.record, letter, _OF_LETTER)
    same = type(row.record) is type(letter)
    return "" if same else f"it shows {row.record}, in the log is {letter}"


def _compared(seen: object, said: object, names: Sequence[str]) -> str:
    pairs = ((name, getattr(seen, name), getattr(said, name)) for name in names)
    return "; ".join(f"{name} is {one}, in the log {other}" for name, one, other in pairs if one != other)


def _late(ledger: Ledger, shown: Shown, row: DeadLetterRow) -> str:
    """Return what is wrong with the mark of a late completion, where the log leaves no doubt about it."""
    letter = row.record
    if not isinstance(letter, Republished) or letter.reason != Reason.EXPIRED:
        return "finished_late is set, and it did not expire" if row.finished_late else ""
    of_id = ledger.letters_of_id.get(letter.wait_id, ())
    also_failed = any(other.reason == Reason.FAILED and other.place in shown.letters for other in of_id)
    if also_failed and not row.finished_late:
        return "finished_late is not set, and there is a `failed` dead letter of its ID"
    where = letter.registration
    entries = [] if where is None else ledger.entries_of.get((letter.wait_id, where[0]), ())
    finished = any(isinstance(entry, Tombstone) and entry.outcome not in EXPORTS for entry in entries)
    if not row.finished_late and _done_behind_its_export(shown, entries):
        return "finished_late is not set, and a processor has finished it behind its export"
    if row.finished_late and not also_failed and not finished:
        return "finished_late is set, and no processor has finished it"
    return ""


def _done_behind_its_export(shown: Shown, entries: Sequence[WaitEntry]) -> bool:
    """Return whether an ID's one registration was exported, and then finished, as far as the sink has come."""
    outcomes = [entry.outcome for entry in entries if isinstance(entry, Tombstone) and shown.is_behind(entry)]
    if sum(isinstance(entry, Registration) for entry in entries) != 1 or Outcome.EXPIRED not in outcomes:
        return False
    return not {Outcome.DONE, Outcome.DISCARDED}.isdisjoint(outcomes[outcomes.index(Outcome.EXPIRED) :])


_RULES = (orphan_row, missing_row, row_differs, changed_rows)


def snapshot_differs(ledger: Ledger) -> Iterator[Finding]:
    """Find what the rules about rows would have said of each snapshot of the tables during the run.

    At the end the table of open registrations is empty; only these snapshots see its rows. Rows and positions of a
    snapshot are of one moment, whatever the sink is about to do. What several snapshots show is reported once.
    """
    known: set[tuple[str, object]] = set()
    for tables in ledger.history.snapshots or ():
        then = ledger.showing(tables)
        for rule in _RULES:
            new = [(about, why) for about, why in rule(then) if (rule.__name__, about) not in known]
            known |= {(rule.__name__, about) for about, _ in new}
            yield from ((about, f"the tables at {clock(tables.at_ms)}: {rule.__name__}: {why}") for about, why in new)
