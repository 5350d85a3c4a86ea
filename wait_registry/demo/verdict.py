"""The reconciliation as it is printed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from wait_registry.demo.reconciliation import Breach, Reconciliation
from wait_registry.demo.screen import Screen

ENDS = {
    "published": "published",
    "done": "done",
    "dead-lettered": "dead_lettered",
    "both (crash)": "done_and_dead_lettered",
    "discarded": "discarded",
    "still standing": "waiting",
    "no longer in the log": "gone",
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
NOT_LOOKED_FOR = "not looked for"
UNJUDGED = "(+n?): n could be so or not, for compaction took from the wait topic what would tell: no longer in the log"


def show_reconciliations(screen: Screen, results: Mapping[str, Reconciliation]) -> bool:
    """Print where every published record ended.

    Returns whether every promise was kept, nothing is left, and the wait topic still had what tells so.
    """
    columns = ("", *(f"#{name}" for name in results), "#total")
    rows = [
        *(_row(label, [getattr(result, field) for result in results.values()]) for label, field in ENDS.items()),
        *(_breach_row(breach, list(results.values())) for breach in Breach),
    ]
    screen.table("Reconciliation, from outside: manifest, downstream's log, topics, Postgres", columns, rows)
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
    rarer = {label: total(ENDS[label]) for label in ("discarded", "still standing", "no longer in the log")}
    others = "".join(f" + {label} {count}" for label, count in rarer.items() if count)
    breaches = ", ".join(f"{breach} {_breach_row(breach, list(results.values()))[-1]}" for breach in Breach)
    return (
        f"published {total('published')} = done {total('done')} + dead-lettered {total('dead_lettered')}"
        f"{crossed}{others}; {breaches}"
    )


def _crash(results: Iterable[Reconciliation]) -> str:
    if any(Breach.FORGOTTEN in result.not_looked_for for result in results):
        return "done, yet expired: right only where a kill came between the answer and its tombstone"
    return "killed between the answer and its tombstone"


def _verdict(results: Collection[Reconciliation]) -> str:
    if not all(result.ok and result.finished for result in results):
        return "[red]the reconciliation is broken[/]"
    if not all(result.whole for result in results):
        return "[yellow]no promise was seen broken, but the log no longer tells of all[/]"
    if any(result.unjudged or result.not_looked_for for result in results):
        return "[green]every promise that could be looked at was kept[/]"
    return "[green]every promise was kept[/]"


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
