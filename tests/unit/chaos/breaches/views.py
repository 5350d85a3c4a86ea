"""Tables that differ from the log for a while, and are right in the end (P6)."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.checker.violation import Kind
from tests.chaos.history.entries import DEAD_LETTERED, WaitEntry
from tests.chaos.history.history import History
from tests.chaos.history.rows import Tables, View
from tests.unit.chaos.breaches.contents import other_content
from tests.unit.chaos.breaches.planting import Choose, breach, swapped, taken
from tests.unit.chaos.script import Script


@breach(Kind.VIEW_DIFFERS, "what stands has no row yet, and the position is behind it")
def _(script: Script, choose: Choose) -> History:
    before = script.view().tables
    entry = taken(script)
    showing(script, script.view(), wait=before.wait)
    return finished(script, entry)


@breach(Kind.VIEW_DIFFERS, "what was resolved has its row still, and the position is behind its tombstone")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    before = script.view().tables
    history = finished(script, entry)
    showing(script, script.view(), wait=before.wait)
    return replace(history, views=script.views)


@breach(Kind.VIEW_DIFFERS, "rows ahead of the position")
def _(script: Script, choose: Choose) -> History:
    before = script.view().tables
    entry = taken(script)
    showing(script, script.view(), progress=before.progress)
    return finished(script, entry)


@breach(Kind.VIEW_DIFFERS, "any column of a row that stands for a while")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    view = script.view()
    (row,) = view.tables.wait
    said = row.registration
    assert said is not None
    other = choose(
        [
            replace(row, place=(row.place[0], row.place[1] - 1)),
            replace(row, registration=None, unreadable="attempt is null"),
            replace(row, registration=replace(said, delivery=7)),
            replace(row, registration=replace(said, instance="another")),
            replace(row, registration=replace(said, source=said.original)),
            replace(row, registration=replace(said, content=other_content(said.content, choose))),
        ]
    )
    showing(script, view, wait=[other])
    return finished(script, entry)


@breach(Kind.VIEW_DIFFERS, "the row of a transaction that was aborted later")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    script.fault("kill", "processor-1")
    aborted, _ = script.export(entry, committed=False)
    row = next(row for row in script.view().tables.dead_letter)
    shown = script.views[-1].tables.dead_letter
    showing(script, script.views[-1], dead_letter=[*shown, replace(row, place=aborted.place)])
    script.export(entry)
    return script.history()


@breach(Kind.VIEW_DIFFERS, "a late completion that is marked only when somebody looks again")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    script.fault("freeze", "processor-1")
    script.export(entry)
    script.letter(entry)
    script.look()
    script.tombstone(entry, DEAD_LETTERED)
    view = script.view()
    rows = view.tables.dead_letter
    (row,) = [row for row in rows if row.wait_id == entry.wait_id and row.finished_late]
    showing(script, view, dead_letter=swapped(rows, row, replace(row, finished_late=False)))
    return script.history()


def showing(script: Script, view: View, **tables: object) -> None:
    """Have a look at the tables show something else."""
    assert isinstance(view.tables, Tables)
    other = replace(view, tables=replace(view.tables, **tables))  # type: ignore[arg-type]
    script.views = swapped(script.views, view, other)


def finished(script: Script, entry: WaitEntry) -> History:
    """Let a registration be done, and return the history."""
    script.call(entry)
    script.tombstone(entry)
    return script.history()
