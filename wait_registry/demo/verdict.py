"""Print the reconciliation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from wait_registry.demo.breaches import Breach
from wait_registry.demo.reconciliation import Reconciliation
from wait_registry.demo.screen import Screen

ENDS = {
    "published": "published",
    "done": "done",
    "dead-lettered": "dead_lettered",
    "both (crash)": "done_and_dead_lettered",
    "discarded": "discarded",
    "still waiting": "waiting",
    "no longer in the log": "gone",
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
UNJUDGED = "(+n?): n records can't be judged, because compaction removed their entries from the wait topic"


def show_reconciliations(screen: Screen, results: Mapping[str, Reconciliation]) -> bool:
    """Print where every published record ended.

    Returns whether every guarantee was kept, all records are settled, and the wait topic still had the evidence.
    """
    columns = ("", *(f"#{name}" for name in results), "#total")
    rows = [
        *(_row(label, [getattr(result, field) for result in results.values()]) for label, field in ENDS.items()),
        *(_breach_row(breach, list(results.values())) for breach in Breach),
    ]
    screen.table("Reconciliation of manifest, downstream's log, topics and Postgres", columns, rows)
    screen.note(equation(results))
    screen.note("; ".join(f"{breach}: {meaning}" for breach, meaning in LEGEND.items()))
    if any(result.unjudged for result in results.values()):
        screen.note(UNJUDGED)
    for name, result in results.items():
        for problem in result.problems:
            screen.note(f"[red]{name}: {problem.breach}:[/] {problem.about}")
    screen.note(_verdict(results.values()))
    return all(result.ok and result.finished and result.whole for result in results.values())


def equation(results: Mapping[str, Reconciliation]) -> str:
    """Return the sum in one line."""

    def total(field: str) -> int:
        return sum(getattr(result, field) for result in results.values())

    both = total("done_and_dead_lettered")
    crossed = f" + both {both} ({_crash(results.values())})" if both else ""
    rarer = {label: total(ENDS[label]) for label in ("discarded", "still waiting", "no longer in the log")}
    others = "".join(f" + {label} {count}" for label, count in rarer.items() if count)
    breaches = ", ".join(f"{breach} {_breach_row(breach, list(results.values()))[-1]}" for breach in Breach)
    return (
        f"published {total('published')} = done {total('done')} + dead-lettered {total('dead_lettered')}"
        f"{crossed}{others}; {breaches}"
    )


def _crash(results: Iterable[Reconciliation]) -> str:
    if any(Breach.FORGOTTEN in result.not_looked_for for result in results):
        return "done and expired: correct only if a kill came between the answer and its tombstone"
    return "killed between the answer and its tombstone"


def _verdict(results: Collection[Reconciliation]) -> str:
    if not all(result.ok and result.finished for result in results):
        return "[red]the reconciliation is broken[/]"
    if not all(result.whole for result in results):
        return "[yellow]no guarantee was broken, but the wait topic no longer has all the evidence[/]"
    if any(result.unjudged or result.not_looked_for for result in results):
        return "[green]every guarantee that could be checked was kept[/]"
    return "[green]every guarantee was kept[/]"


def _row(label: str, counts: Sequence[int]) -> tuple[str, ...]:
    return (label, *map(str, counts), str(sum(counts)))


def _breach_row(breach: Breach, results: Sequence[Reconciliation]) -> tuple[str, ...]:
    looked = [result for result in results if breach not in result.not_looked_for]
    cells = [_breach_cell(breach, [result]) if result in looked else NOT_LOOKED_FOR for result in results]
    return (breach, *cells, _breach_cell(breach, looked) if looked else NOT_LOOKED_FOR)


def _breach_cell(breach: Breach, results: Sequence[Reconciliation]) -> str:
    count = sum(result.breaches[breach] for result in results)
    unjudged = sum(result.unjudged.get(breach, 0) for result in results)
    return f"{count} (+{unjudged}?)" if unjudged else str(count)
