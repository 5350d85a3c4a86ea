"""P6: Postgres shows the log exactly as far as sink_progress says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from typing import Any, NamedTuple

from tests.chaos.checker.ledger import Finding, Ledger, about_record
from tests.chaos.history.entries import Registration, Republished, Tombstone, TopicRecord, WaitEntry, at, clock
from tests.chaos.history.history import DeadLetterRow, Partition, WaitRow, topics_again
from wait_registry.records.dead_letter import Reason
from wait_registry.records.tombstone import Outcome
from waitreg.load.manifest import Coordinates

# The tables don't show these.
FINISHED = (Outcome.DONE, Outcome.DISCARDED, Outcome.RETRIED)
_UNSHOWN = ("append_ms", "committed")
_UNSHOWN_OF_LETTER = (*_UNSHOWN, "max_deliveries")


class Table(NamedTuple):
    """What a table should have, and its rows, by the same keys; ``about`` gets a key, and a row or what it shows."""

    name: str
    wanted: Mapping[Any, Any]
    rows: Mapping[Any, Any]
    about: Callable[[Any, Any], Coordinates | str]
    differs: Callable[[Any, Any], str]


class Shown:
    """The log as far as the tables of a ledger show it: a late position is one violation, not many."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self._tables = ledger, ledger.history.tables
        self._wait_topic = ledger.history.settings.wait.topic
        progress = self._tables.progress if self._tables is not None else ()
        self._positions: Mapping[Partition, int] = {(one.topic, one.partition): one.next_offset for one in progress}

    def tables(self) -> Iterator[Table]:
        """Yield the four tables; none if they weren't read."""
        if self._tables is None:
            return
        ledger = self._ledger
        waits = {row.wait_id: row for row in self._tables.wait}
        yield Table("wait", dict(self._open()), waits, lambda wait_id, _: ledger.about(wait_id), _wait_differs)
        letters = {row.record.place: row for row in self._tables.dead_letter}
        yield Table("dead_letter", self._letters, letters, _about_letter, self._letter_differs)
        quarantined = {row.place: row for row in self._tables.quarantine}
        unreadable = {(self._wait_topic, *one.place): one for one in ledger.unreadable if self._is_behind(one)}
        # A later entry of its key may have saved the sink from reading it.
        last = {name: entries[-1].offset for name, entries in ledger.entries_of.items()}
        wanted = {
            place: entry
            for place, entry in unreadable.items()
            if place in quarantined or last.get((entry.wait_id, entry.partition), -1) < entry.offset
        }
        yield Table("quarantine", wanted, quarantined, lambda place, _: at(place), lambda row, entry: "")
        # The sink doesn't read redelivery topics, and an empty partition needs no position.
        again = topics_again(ledger.history.settings)
        read = {place: end for place, end in ledger.history.ends.items() if place[0] not in again}
        ends = {place: end for place, end in read.items() if end or place in self._positions}
        yield Table(
            "sink_progress", ends, self._positions, lambda place, _: f"{place[0]}/{place[1]}", _position_differs
        )

    def _is_behind(self, entry: WaitEntry) -> bool:
        """Return whether the sink has passed an entry of the wait topic."""
        return entry.offset < self._positions.get((self._wait_topic, entry.partition), 0)

    def _open(self) -> Iterator[tuple[str, Registration]]:
        for (wait_id, _), entries in self._ledger.entries_of.items():
            last = next((entry for entry in reversed(entries) if self._is_behind(entry)), None)
            if isinstance(last, Registration):
                yield wait_id, last

    @cached_property
    def _letters(self) -> Mapping[Coordinates, TopicRecord]:
        return {
            letter.place: letter
            for letter in self._ledger.history.dead_letters
            if letter.committed and letter.offset < self._positions.get((letter.topic, letter.partition), 0)
        }

    def _letter_differs(self, row: DeadLetterRow, letter: TopicRecord) -> str:
        if row.unreadable:
            return row.unreadable
        if isinstance(row.record, Republished) and isinstance(letter, Republished):
            return _compared(row.record, letter, _UNSHOWN_OF_LETTER) or self._wrongly_late(
                row.record, row.finished_late
            )
        same = type(row.record) is type(letter) and not row.finished_late
        return "" if same else f"it shows {row}, in the log is {letter}"

    def _wrongly_late(self, letter: Republished, marked: bool) -> str:
        """Return what is wrong with the mark of a late completion, where the log leaves no doubt about it."""
        may_be = must_be = False
        if letter.reason == Reason.EXPIRED:
            of_id, where = self._ledger.letters_of_id.get(letter.wait_id, ()), letter.registration
            failed = any(other.reason == Reason.FAILED and other.place in self._letters for other in of_id)
            entries = [] if where is None else self._ledger.entries_of.get((letter.wait_id, where[0]), ())
            may_be = any(isinstance(entry, Tombstone) and entry.outcome in FINISHED for entry in entries)
            must_be = not failed and self._done_behind_its_export(entries)
        if marked and not may_be:
            return "finished_late is set, and no processor has finished it"
        return "finished_late is not set, and a processor has finished it" if must_be and not marked else ""

    def _done_behind_its_export(self, entries: Sequence[WaitEntry]) -> bool:
        """Return whether an ID's one registration was exported, and then finished, as far as the sink has come."""
        outcomes = [entry.outcome for entry in entries if isinstance(entry, Tombstone) and self._is_behind(entry)]
        if sum(isinstance(entry, Registration) for entry in entries) != 1 or Outcome.EXPIRED not in outcomes:
            return False
        return not {Outcome.DONE, Outcome.DISCARDED}.isdisjoint(outcomes[outcomes.index(Outcome.EXPIRED) :])


def missing_row(ledger: Ledger) -> Iterator[Finding]:
    """Find what is open, was dead-lettered or can't be read, and has no row."""
    for table in Shown(ledger).tables():
        for key in table.wanted.keys() - table.rows.keys():
            yield table.about(key, table.wanted[key]), f"{table.wanted[key]} of {key} has no row in {table.name}"


def orphan_row(ledger: Ledger) -> Iterator[Finding]:
    """Find rows of what isn't open, isn't committed, can be read, or isn't read by the sink."""
    for table in Shown(ledger).tables():
        for key in table.rows.keys() - table.wanted.keys():
            yield (
                table.about(key, table.rows[key]),
                f"the log has nothing for the row {table.rows[key]} in {table.name}",
            )


def row_differs(ledger: Ledger) -> Iterator[Finding]:
    """Find rows that differ from their record in the log, which `changed` compares with what was published."""
    for table in Shown(ledger).tables():
        for key in table.rows.keys() & table.wanted.keys():
            if why := table.differs(table.rows[key], table.wanted[key]):
                yield table.about(key, table.rows[key]), f"the row of {table.wanted[key]} in {table.name}: {why}"


def _about_letter(_: Coordinates, one: DeadLetterRow | TopicRecord) -> Coordinates | str:
    return about_record(one.record if isinstance(one, DeadLetterRow) else one)


def _wait_differs(row: WaitRow, entry: Registration) -> str:
    return row.unreadable if row.registration is None else _compared(row.registration, entry, _UNSHOWN)


def _position_differs(position: int, end: int) -> str:
    return "" if position == end else f"the position is {position}, the log's end {end}"


def _compared(seen: Registration | Republished, said: Registration | Republished, unshown: Sequence[str]) -> str:
    names = (field.name for field in fields(said) if field.name not in unshown)
    pairs = ((name, getattr(seen, name), getattr(said, name)) for name in names)
    return "; ".join(f"{name} is {one}, in the log {other}" for name, one, other in pairs if one != other)


def snapshot_differs(ledger: Ledger) -> Iterator[Finding]:
    """Find what the rules about rows would have said of each snapshot of the tables during the run.

    At the end the table of open registrations is empty; only these snapshots see its rows. Rows and positions of a
    snapshot are of one moment, whatever the sink is about to do. What several snapshots show is reported once.
    """
    known: set[tuple[str, object]] = set()
    for tables in ledger.history.snapshots or ():
        then = ledger.showing(tables)
        for rule in (orphan_row, missing_row, row_differs):
            new = [(about, why) for about, why in rule(then) if (rule.__name__, about) not in known]
            known |= {(rule.__name__, about) for about, _ in new}
            yield from ((about, f"the tables at {clock(tables.at_ms)}: {rule.__name__}: {why}") for about, why in new)
