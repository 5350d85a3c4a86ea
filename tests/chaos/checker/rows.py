"""P6: Postgres shows the log exactly as far as sink_progress says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from tests.chaos.checker import words
from tests.chaos.checker.changed import changed_rows
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.violation import Kind, Violation
from tests.chaos.history.entries import DISCARDED, DONE, EXPIRED, EXPORTS, FAILED, Place, Republished, WaitEntry
from tests.chaos.history.history import DeadLetterRow, Partition, WaitRow, redelivery_topics
from wait_registry.demo.manifest import Coordinates


class Shown:
    """The rows that each table should have, up to `sink_progress`: that this is behind is one breach, not many."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        history = ledger.history
        self.positions: Mapping[Partition, int] = {
            (row.topic, row.partition): row.next_offset for row in history.progress_rows or ()
        }
        # Redelivery topics are the processors' alone.
        again = redelivery_topics(sorted({record.topic for record in history.published}), history.group)
        self.ends: Mapping[Partition, int] = {
            place: end for place, end in history.ends.items() if place[0] not in again
        }

    @cached_property
    def waits(self) -> Mapping[str, WaitEntry]:
        """Registrations that stand at the sink's position, by id."""
        found: dict[str, WaitEntry] = {}
        for (wait_id, partition), entries in self._ledger.entries_of.items():
            position = self._position(partition)
            last = next((entry for entry in reversed(entries) if entry.offset < position), None)
            if last is not None and last.registration is not None:
                found[wait_id] = last
        return found

    @cached_property
    def letters(self) -> Mapping[Coordinates, Republished]:
        """Every committed record of the dead letter topics, by its place."""
        return {
            letter.place: letter
            for letter in self._ledger.history.dead_letters
            if letter.committed and letter.offset < self.positions.get((letter.topic, letter.partition), 0)
        }

    @cached_property
    def unreadable(self) -> Mapping[Place, WaitEntry]:
        """What can't be read of the wait topic."""
        return {
            entry.place: entry
            for entry in self._ledger.log
            if entry.unreadable and entry.offset < self._position(entry.partition)
        }

    def is_behind(self, entry: WaitEntry) -> bool:
        """Return whether the sink has come past an entry of the wait topic."""
        return entry.offset < self._position(entry.partition)

    def must_be_quarantined(self, entry: WaitEntry) -> bool:
        """Return whether nothing later of its key can have spared the sink the reading."""
        later = self._ledger.entries_of.get((entry.wait_id, entry.partition), ())
        return not later or later[-1].offset < entry.offset

    def _position(self, partition: int) -> int:
        return self.positions.get((self._ledger.history.wait_topic, partition), 0)


def missing_row(ledger: Ledger) -> Iterator[Violation]:
    """Find what stands, was dead-lettered or can't be read, and has no row."""
    history, shown = ledger.history, Shown(ledger)
    if history.wait_rows is None or history.dead_letter_rows is None or history.quarantine_rows is None:
        return
    waits = {row.wait_id for row in history.wait_rows}
    for wait_id, entry in shown.waits.items():
        if wait_id not in waits:
            yield Violation(Kind.MISSING_ROW, ledger.about(wait_id), f"{words.entry(entry)} stands, and has no row")
    rows = {row.place for row in history.dead_letter_rows}
    for place, letter in shown.letters.items():
        if place not in rows:
            about = words.place(place) if letter.lineage is None else letter.lineage.original
            yield Violation(Kind.MISSING_ROW, about, f"{words.letter(letter)} has no row")
    aside = {row.place[1:] for row in history.quarantine_rows}
    for where, entry in shown.unreadable.items():
        if where not in aside and shown.must_be_quarantined(entry):
            why = f"{words.entry(entry)} ({entry.unreadable}) is not in quarantine"
            yield Violation(Kind.MISSING_ROW, ledger.about(entry.wait_id), why)
    for (topic, partition), end in shown.ends.items():
        if end and (topic, partition) not in shown.positions:
            why = f"{topic}/{partition} has no row in sink_progress, its end is {end}"
            yield Violation(Kind.MISSING_ROW, f"{topic}/{partition}", why)


def orphan_row(ledger: Ledger) -> Iterator[Violation]:
    """Find rows of what doesn't stand, isn't committed, or can be read."""
    history, shown = ledger.history, Shown(ledger)
    for row in history.wait_rows or ():
        if row.wait_id not in shown.waits:
            why = f"a row in wait shows {words.registration(row.place)}, which does not stand"
            yield Violation(Kind.ORPHAN_ROW, ledger.about(row.wait_id), why)
    for letter in history.dead_letter_rows or ():
        if letter.place not in shown.letters:
            why = f"a row in dead_letter shows {words.place(letter.place)}, where no committed record stands"
            yield Violation(Kind.ORPHAN_ROW, letter.original or words.place(letter.place), why)
    for aside in history.quarantine_rows or ():
        entry = shown.unreadable.get(aside.place[1:])
        if entry is None or aside.place[0] != history.wait_topic:
            why = f"a row in quarantine ({aside.error}) shows {words.place(aside.place)}, which can be read"
            yield Violation(Kind.ORPHAN_ROW, words.place(aside.place), why)
    for progress in history.progress_rows or ():
        if (progress.topic, progress.partition) not in shown.ends:
            why = f"a row in sink_progress names {progress.topic}/{progress.partition}, which the sink doesn't read"
            yield Violation(Kind.ORPHAN_ROW, f"{progress.topic}/{progress.partition}", why)


_REGISTRATION = (
    "original",
    "wait_id",
    "expires_at_ms",
    "group",
    "instance",
    "delivery",
    "dead_letter_topic",
    "expiry_policy",
    "max_deliveries",
    "source",
)


def row_differs(ledger: Ledger) -> Iterator[Violation]:
    """Find rows that differ from their record in anything but its content, which `changed` compares."""
    shown = Shown(ledger)
    for row in ledger.history.wait_rows or ():
        entry = shown.waits.get(row.wait_id)
        if entry is not None and (why := _wait(row, entry)):
            yield Violation(Kind.ROW_DIFFERS, ledger.about(row.wait_id), f"the row of {words.entry(entry)}: {why}")
    for letter_row in ledger.history.dead_letter_rows or ():
        letter = shown.letters.get(letter_row.place)
        if letter is not None and (why := _letter(letter_row, letter) or _late(ledger, shown, letter_row)):
            about = words.place(letter.place) if letter.lineage is None else letter.lineage.original
            yield Violation(Kind.ROW_DIFFERS, about, f"the row of {words.letter(letter)}: {why}")
    for place, position in shown.positions.items():
        end = shown.ends.get(place)
        if end is not None and position != end:
            why = f"sink_progress is at {position}, the log's end at {end}"
            yield Violation(Kind.ROW_DIFFERS, f"{place[0]}/{place[1]}", why)


def _wait(row: WaitRow, entry: WaitEntry) -> str:
    said = entry.registration
    if row.registration is None:
        return row.unreadable
    assert said is not None
    if row.place != entry.place:
        return f"it shows {words.registration(row.place)}"
    return _compared({name: (getattr(row.registration, name), getattr(said, name)) for name in _REGISTRATION})


def _letter(row: DeadLetterRow, letter: Republished) -> str:
    if row.unreadable:
        return row.unreadable
    lineage = letter.lineage
    if lineage is None:
        return "" if row.reason is None else f"reason is {row.reason}, and the record is no dead letter"
    return _compared(
        {
            "reason": (row.reason, letter.reason),
            "dead_letter_time": (row.time_ms, letter.time_ms),
            "wait_expiration_uuid": (row.wait_id, lineage.wait_id),
            "original": (row.original, lineage.original),
            "registration": (row.registration, lineage.registration),
            "consumer_group": (row.group, lineage.group),
            "instance": (row.instance, lineage.instance),
            "delivery": (row.delivery, lineage.delivery),
            "error_class": (row.error_class, letter.error_class),
            "error_message": (row.error_message, letter.error_message),
            "error_stacktrace": (row.error_stacktrace, letter.error_stacktrace),
        }
    )


def _late(ledger: Ledger, shown: Shown, row: DeadLetterRow) -> str:
    """Return what is wrong with the mark of a late completion, where the log leaves no doubt about it."""
    if row.reason != EXPIRED or row.wait_id is None:
        return "finished_late is set, and it did not expire" if row.finished_late else ""
    also_failed = any(
        letter.reason == FAILED and letter.place in shown.letters
        for letter in ledger.letters_of_id.get(row.wait_id, ())
    )
    if also_failed and not row.finished_late:
        return "finished_late is not set, and there is a `failed` dead letter of its id"
    entries = [] if row.registration is None else ledger.entries_of.get((row.wait_id, row.registration[0]), ())
    finished = any(entry.is_tombstone and entry.outcome not in EXPORTS for entry in entries)
    if not row.finished_late and _done_behind_its_export(shown, entries):
        return "finished_late is not set, and a processor has finished it behind its export"
    if row.finished_late and not also_failed and not finished:
        return "finished_late is set, and no processor has finished it"
    return ""


def _done_behind_its_export(shown: Shown, entries: Sequence[WaitEntry]) -> bool:
    """Return whether an id's one registration was exported, and then finished, as far as the sink has come."""
    seen = [entry for entry in entries if shown.is_behind(entry)]
    outcomes = [entry.outcome for entry in seen if entry.is_tombstone]
    if sum(entry.registration is not None for entry in entries) != 1 or EXPIRED not in outcomes:
        return False
    return not {DONE, DISCARDED}.isdisjoint(outcomes[outcomes.index(EXPIRED) :])


def _compared(fields: dict[str, tuple[object, object]]) -> str:
    return "; ".join(f"{name} is {seen}, in the log {said}" for name, (seen, said) in fields.items() if seen != said)


_RULES = (orphan_row, missing_row, row_differs, changed_rows)


def view_differs(ledger: Ledger) -> Iterator[Violation]:
    """Find what the rules about rows would have said of each look at the tables while the run continued.

    At the end the table of what stands is empty; only these looks see its rows. A look is one snapshot: rows and
    positions are of one moment, whatever the sink is about to do. What several looks show is told once.
    """
    told: set[tuple[Kind, object]] = set()
    for view in ledger.history.views or ():
        then = ledger.showing(view.tables)
        for found in (violation for rule in _RULES for violation in rule(then)):
            if (found.kind, found.about) not in told:
                told.add((found.kind, found.about))
                why = f"the look of {words.time(view.began_ms)} at the tables: {found.kind}: {found.why}"
                yield Violation(Kind.VIEW_DIFFERS, found.about, why)
