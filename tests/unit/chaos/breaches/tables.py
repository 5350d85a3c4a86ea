"""Tables that differ from the log (P6)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.chaos.checker.violation import Kind
from tests.chaos.history.entries import DEAD_LETTERED, DONE, WaitEntry
from tests.chaos.history.history import History
from tests.chaos.history.rows import ProgressRow, QuarantineRow, WaitRow
from tests.unit.chaos.breaches.planting import Choose, breach, done_ones, swapped, taken
from tests.unit.chaos.breaches.shown_tables import letter_rows, progress
from tests.unit.chaos.script import DLQ, INPUT, WAIT, WAIT_PARTITIONS, Script


@breach(Kind.ORPHAN_ROW, "a row of what was resolved")
def _(script: Script, choose: Choose) -> History:
    entry = choose(done_ones(script))
    return replace(script.history(), wait_rows=[WaitRow(entry.wait_id, entry.place, entry.registration)])


@breach(Kind.ORPHAN_ROW, "a row of a dead letter that was aborted, or never was")
def _(script: Script, choose: Choose) -> History:
    history = script.history()
    row = choose(letter_rows(history))
    aborted = [letter.place for letter in script.dead_letters if not letter.committed]
    place = choose([*aborted, (DLQ, 0, 7_000)])
    return replace(history, dead_letter_rows=[*letter_rows(history), replace(row, place=place)])


@breach(Kind.ORPHAN_ROW, "something readable in quarantine")
def _(script: Script, choose: Choose) -> History:
    entry = choose(script.wait_log)
    return replace(script.history(), quarantine_rows=[QuarantineRow((WAIT, *entry.place), "?")])


@breach(Kind.ORPHAN_ROW, "a position in a topic that the sink doesn't read")
def _(script: Script, choose: Choose) -> History:
    history = script.history()
    return replace(history, progress_rows=[*progress(history), ProgressRow(INPUT, 0, 3)])


@breach(Kind.MISSING_ROW, "a dead letter without its row")
def _(script: Script, choose: Choose) -> History:
    history = script.history()
    rows = letter_rows(history)
    row = choose(rows)
    return replace(history, dead_letter_rows=[one for one in rows if one is not row])


@breach(Kind.MISSING_ROW, "a standing registration without its row", Kind.UNFINISHED)
def _(script: Script, choose: Choose) -> History:
    taken(script)
    return replace(script.history(), wait_rows=[])


@breach(Kind.MISSING_ROW, "what can't be read isn't in quarantine")
def _(script: Script, choose: Choose) -> History:
    offset = script.ends[WAIT, 0]
    script.ends[WAIT, 0] += 1
    script.wait_log.append(WaitEntry(0, offset, script.now_ms, "rubbish", True, unreadable="no headers"))
    return replace(script.history(), quarantine_rows=[])


@breach(Kind.MISSING_ROW, "a partition without a position")
def _(script: Script, choose: Choose) -> History:
    # Without dead letters in it: those would have rows from nowhere.
    history = script.history()
    partition = choose(range(WAIT_PARTITIONS))
    kept = [row for row in progress(history) if (row.topic, row.partition) != (WAIT, partition)]
    return replace(history, progress_rows=kept)


@breach(Kind.ROW_DIFFERS, "any column of dead_letter")
def _(script: Script, choose: Choose) -> History:
    history = script.history()
    row = choose(letter_rows(history))
    others: list[dict[str, Any]] = [
        {"reason": "blocked"},
        {"time_ms": 1},
        {"wait_id": "another"},
        {"registration": (9, 9)},
        {"group": None},
        {"instance": "another"},
        {"delivery": 7},
        {"error_class": "KeyError"},
        {"error_message": None},
        {"error_stacktrace": "another"},
        {"unreadable": "headers are no list"},
    ]
    other = replace(row, **choose(others))
    return replace(history, dead_letter_rows=swapped(letter_rows(history), row, other))


@breach(Kind.ROW_DIFFERS, "a late completion that isn't marked, or a mark without one")
def _(script: Script, choose: Choose) -> History:
    history = script.history()
    finished = {entry.wait_id for entry in script.wait_log if entry.outcome in (DONE, DEAD_LETTERED)}
    marked = [row for row in letter_rows(history) if row.finished_late]
    others = [row for row in letter_rows(history) if row.wait_id not in finished and not row.finished_late]
    row = choose([*marked, *others])
    turned = replace(row, finished_late=not row.finished_late)
    return replace(history, dead_letter_rows=swapped(letter_rows(history), row, turned))


@breach(Kind.ROW_DIFFERS, "done behind its export, and never marked")
def _(script: Script, choose: Choose) -> History:
    history = script.history()
    done = {entry.wait_id for entry in script.wait_log if entry.outcome == DONE}
    (row,) = [row for row in letter_rows(history) if row.finished_late and row.wait_id in done]
    turned = replace(row, finished_late=False)
    return replace(history, dead_letter_rows=swapped(letter_rows(history), row, turned))


@breach(Kind.ROW_DIFFERS, "any column of wait", Kind.UNFINISHED)
def _(script: Script, choose: Choose) -> History:
    taken(script)
    history = script.history()
    assert history.wait_rows is not None
    (row,) = history.wait_rows
    said = row.registration
    assert said is not None
    other = choose(
        [
            replace(row, place=(row.place[0], row.place[1] - 1)),
            replace(row, registration=None, unreadable="attempt is null"),
            replace(row, registration=replace(said, expires_at_ms=said.expires_at_ms + 1)),
            replace(row, registration=replace(said, instance="another")),
            replace(row, registration=replace(said, source=said.original)),
            replace(row, registration=replace(said, dead_letter_topic="another")),
        ]
    )
    return replace(history, wait_rows=[other])


@breach(Kind.ROW_DIFFERS, "a position behind the log's end")
def _(script: Script, choose: Choose) -> History:
    before = progress(script.history())
    entry = script.done(script.publish())
    moved = [row for row in before if (row.topic, row.partition) == (WAIT, entry.partition)]
    others = [row for row in progress(script.history()) if (row.topic, row.partition) != (WAIT, entry.partition)]
    return replace(script.history(), progress_rows=[*others, *moved])


@breach(Kind.ROW_DIFFERS, "a position ahead of the log's end")
def _(script: Script, choose: Choose) -> History:
    history = script.history()
    row = choose(progress(history))
    ahead = replace(row, next_offset=row.next_offset + 1)
    return replace(history, progress_rows=swapped(progress(history), row, ahead))
