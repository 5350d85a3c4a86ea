"""P1, R1: what operators asked for was done, once, and nothing else in its name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.chaos.checker.ledger import Finding, Ledger
from tests.chaos.history.entries import at, clock
from tests.chaos.history.history import Act, Partition
from wait_registry.records.operation import Advanced, DeletionRequested, Kind, Mark, RecordsDeleted
from waitreg.load.manifest import Coordinates


def not_as_asked(ledger: Ledger) -> Iterator[Finding]:
    """Find what rewinds, replays, redrives, archives and purges left undone, or did beside what they were asked for."""
    for judge in (_replays, _moves, _marks, _deletions):
        yield from judge(ledger)


def _replays(ledger: Ledger) -> Iterator[Finding]:
    """Judge that a replay calls the records of its ranges only; `_moves` judges that it settles them."""
    for wait_id, calls in ledger.replays_of_id.items():
        for call in calls:
            if not ledger.is_replayed(wait_id, call.started_ms):
                yield ledger.about(wait_id), f"{call.path} called it at {clock(call.started_ms)}, outside of its ranges"


def _moves(ledger: Ledger) -> Iterator[Finding]:
    """Judge that replayed records are settled, and that the group handles rewound ones.

    What is passed over or deleted after it was rewound isn't judged.
    """
    for place, acts in ledger.acts.items():
        wait_id, handled = ledger.id_of[place], []
        for letters in (ledger.letters_of_id, ledger.retries_of_id):
            handled += [letter.append_ms for letter in letters.get(wait_id, ())]
        replayed = [call.started_ms for call in ledger.replays_of_id.get(wait_id, ()) if ledger.settles(call)]
        called = [call.started_ms for call in ledger.calls_of_id.get(wait_id, ())]
        registered = [entry.append_ms for entry in ledger.registrations_of.get(place, ())]
        for act, from_ms, until_ms in acts:
            if act is Act.REPLAYED:
                is_handled = any(from_ms <= moment_ms <= until_ms for moment_ms in (*handled, *replayed))
            else:
                # The processors start again when an action ends.
                is_handled = max((*handled, *called, *registered), default=0) >= until_ms
            is_judged = act is Act.REPLAYED or (act is Act.REWOUND and not ledger.is_passed(place))
            if is_judged and not is_handled:
                yield ledger.original_at(place), f"{at(place)} was {act} at {clock(until_ms)}, and not handled"


def _marks(ledger: Ledger) -> Iterator[Finding]:
    """Judge that each delivery is redriven once, and not while it is archived, and that the record is there (R1)."""
    last: dict[str, Kind] = {}
    sent, counted = Counter[str](), Counter[str]()
    for event in ledger.history.operations:
        if isinstance(event, Advanced):
            counted[event.job] = event.counts.get(Kind.REDRIVE.state, 0)
        if not isinstance(event, Mark):
            continue
        before, last[event.wait_id] = last.get(event.wait_id, Kind.RESTORE), event.kind
        if event.kind is not Kind.REDRIVE:
            continue
        sent[event.job] += 1
        said = f"job {event.job} sent it to {event.target}"
        if before is not Kind.RESTORE:
            yield ledger.about(event.wait_id), f"{said}, and it was {before.state}"
        if event.target is None or event.target not in ledger.redelivered:
            yield ledger.about(event.wait_id), f"{said}, where it isn't"
    for job in sent.keys() | counted.keys():
        if sent[job] != counted[job]:
            yield f"job {job}", f"it counts {counted[job]} redriven, and has {sent[job]} marks"


def _deletions(ledger: Ledger) -> Iterator[Finding]:
    """Judge that a purge "deletes no dead letter that is open by" the marks (R1), and that nothing else is gone."""
    closed: set[Coordinates] = set()
    asked: dict[Partition, int] = {}
    gone = [letter for letter in ledger.letters if letter.offset < ledger.history.begins.get(letter.place[:2], 0)]
    for event in ledger.history.operations:
        if isinstance(event, Mark):
            changed = {place.as_written()[:] for place in event.dead_letters}
            closed = closed - changed if event.kind is Kind.RESTORE else closed | changed
        elif isinstance(event, DeletionRequested):
            asked |= {(event.topic, number): before for number, before in event.before.items()}
        elif isinstance(event, RecordsDeleted):
            for letter in gone:
                if letter.offset < asked.get(letter.place[:2], 0) and letter.place not in closed:
                    yield letter.original, f"{letter} was open, and job {event.job} deleted it"
            # The next deletion didn't delete these.
            gone = [letter for letter in gone if letter.offset >= asked.get(letter.place[:2], 0)]
    for letter in gone:
        yield letter.original, f"{letter} is deleted, and no operator asked for that"
