"""The reconciliation as it is printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from waitreg.demo.screen import Screen
from waitreg.reconciliation import Breach, Reconciliation

ENDS = {
    "published": "published",
    "done": "done",
    "dead-lettered": "dead_lettered",
    "both (crash)": "done_and_dead_lettered",
    "discarded": "discarded",
    "still standing": "waiting",
    "(handled again)": "handled_again",
}
LEGEND = {
    Breach.LOST: "nowhere any more",
    Breach.DOUBLED: "exported twice",
    Breach.UNPAIRED: "exported without its tombstone, or the other way round",
    Breach.FALSELY_EXPORTED: "exported although it was finished before",
    Breach.CHANGED: "not the bytes that were published",
    Breach.FORGOTTEN: "done, yet expired, and no kill explains it",
    Breach.VIEW_DIFFERS: "Postgres and the log disagree",
}


def show_reconciliations(screen: Screen, results: Mapping[str, Reconciliation]) -> bool:
    """Print where every published record ended; return whether every promise was kept and nothing is left."""
    columns = ("", *(f"#{name}" for name in results), "#total")
    rows = [
        *(_row(label, [getattr(result, field) for result in results.values()]) for label, field in ENDS.items()),
        *(_row(breach, [result.breaches[breach] for result in results.values()]) for breach in Breach),
    ]
    screen.table("Reconciliation, from outside: manifest, downstream's log, topics, Postgres", columns, rows)
    screen.note(equation(results))
    screen.note("; ".join(f"{breach}: {meaning}" for breach, meaning in LEGEND.items()))
    for name, result in results.items():
        for problem in result.problems:
            screen.note(f"[red]{name}: {problem.breach}:[/] {problem.about}")
    kept = all(result.ok and result.finished for result in results.values())
    screen.note("[green]every promise was kept[/]" if kept else "[red]the reconciliation is broken[/]")
    return kept


def equation(results: Mapping[str, Reconciliation]) -> str:
    """Return the sum in one line."""

    def total(field: str) -> int:
        return sum(getattr(result, field) for result in results.values())

    both = total("done_and_dead_lettered")
    crossed = f" + both {both} (killed between the answer and its tombstone)" if both else ""
    breaches = {breach: sum(result.breaches[breach] for result in results.values()) for breach in Breach}
    return (
        f"published {total('published')} = done {total('done')} + dead-lettered {total('dead_lettered')}{crossed}; "
        + ", ".join(f"{breach} {count}" for breach, count in breaches.items())
    )


def _row(label: str, counts: Sequence[int]) -> tuple[str, ...]:
    return (label, *map(str, counts), str(sum(counts)))
