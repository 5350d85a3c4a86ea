"""Print the reconciliation."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from waitreg.reconcile.breaches import Breach
from waitreg.reconcile.reconciliation import Reconciliation
from waitreg.reconcile.screen import Screen

ENDS = {
    "published": "published",
    "done": "done",
    "dead-lettered": "dead_lettered",
    "both (crash)": "done_and_dead_lettered",
    "discarded": "discarded",
    "still waiting": "waiting",
    "(handled again)": "handled_again",
}
LEGEND = {
    Breach.LOST: "in no topic and not done",
    Breach.DOUBLED: "exported twice",
    Breach.UNPAIRED: "exported without its tombstone, or a tombstone without its export",
    Breach.FALSELY_EXPORTED: "exported although it had been settled before",
    Breach.CHANGED: "differs from the published bytes",
    Breach.FORGOTTEN: "done and expired, and no kill explains it",
    Breach.TABLES_DIFFER: "Postgres and the log disagree",
}
NOT_LOOKED_FOR = "not checked"


def show_reconciliations(screen: Screen, results: Mapping[str, Reconciliation]) -> bool:
    """Print where every published record ended; return whether every guarantee was kept and all are settled."""
    columns = ("", *(f"#{name}" for name in results), "#total")
    rows = [
        *(_row(label, [getattr(result, field) for result in results.values()]) for label, field in ENDS.items()),
        *(_breach_row(breach, list(results.values())) for breach in Breach),
    ]
    screen.table("Reconciliation of manifest, downstream's log, topics and Postgres", columns, rows)
    screen.note(equation(results))
    for breach, meaning in LEGEND.items():
        screen.note(f"{breach}: {meaning}")
    for name, result in results.items():
        for problem in result.problems:
            screen.note(f"[red]{name}: {problem.breach}:[/] {problem.about}")
    screen.note(_verdict(results.values()))
    return all(result.ok and result.finished for result in results.values())


def equation(results: Mapping[str, Reconciliation]) -> str:
    """Return the sum in one line."""

    def total(field: str) -> int:
        return sum(getattr(result, field) for result in results.values())

    rarer = {label: total(ENDS[label]) for label in ("both (crash)", "discarded", "still waiting")}
    others = "".join(f" + {label} {count}" for label, count in rarer.items() if count)
    breaches = ", ".join(f"{breach} {_breach_row(breach, list(results.values()))[-1]}" for breach in Breach)
    return (
        f"published {total('published')} = done {total('done')} + dead-lettered {total('dead_lettered')}"
        f"{others}; {breaches}"
    )


def _verdict(results: Collection[Reconciliation]) -> str:
    if not all(result.ok and result.finished for result in results):
        return "[red]the reconciliation is broken[/]"
    if any(result.not_looked_for for result in results):
        return "[green]every guarantee that could be checked was kept[/]"
    return "[green]every guarantee was kept[/]"


def _row(label: str, counts: Sequence[int]) -> tuple[str, ...]:
    return (label, *map(str, counts), str(sum(counts)))


def _breach_row(breach: Breach, results: Sequence[Reconciliation]) -> tuple[str, ...]:
    counts = [None if breach in result.not_looked_for else result.breaches[breach] for result in results]
    seen = [count for count in counts if count is not None]
    cells = (NOT_LOOKED_FOR if count is None else str(count) for count in counts)
    return (breach, *cells, str(sum(seen)) if seen else NOT_LOOKED_FOR)
