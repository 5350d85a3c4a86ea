"""P6: whenever somebody looks, the tables show the log exactly as far as `sink_progress` says, and nothing of later."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker import words
from tests.chaos.checker.changed import changed_rows
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.missing_row import missing_row
from tests.chaos.checker.orphan_row import orphan_row
from tests.chaos.checker.row_differs import row_differs
from tests.chaos.checker.violation import Kind, Violation

_RULES = (orphan_row, missing_row, row_differs, changed_rows)


def view_differs(ledger: Ledger) -> Iterator[Violation]:
    """Find what the rules about rows would have said of each look at the tables while the run went on.

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
