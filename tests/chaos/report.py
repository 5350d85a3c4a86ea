"""What is said of a run, and of all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from tests.chaos import ledger
from tests.chaos.ledger import BROKEN, KEPT, VOID, Entry
from tests.chaos.run import Outcome
from tests.chaos.schedule import Schedule

STORIES = 3


def entry_of(outcome: Outcome, commit: str) -> Entry:
    """Return a run's line of the ledger."""
    verdict = outcome.verdict
    figures = verdict.figures
    return Entry(
        seed=outcome.schedule.seed,
        commit=commit,
        date=_now(),
        seconds=round(outcome.seconds),
        records=figures.get("records", 0),
        faults="; ".join(f"{fault.name} {fault.target}" for fault in outcome.faults),
        done=figures.get("done", 0),
        dead_lettered=figures.get("dead_lettered", 0),
        expired=figures.get("expired", 0) + figures.get("redelivered", 0),
        registered_ms=figures.get("slowest_registration_ms", 0),
        exported_ms=figures.get("slowest_export_ms", 0),
        verdict=BROKEN if outcome.failed else VOID if outcome.void else KEPT,
        **ledger.counted(dict(verdict.counts), len(outcome.endings) + bool(outcome.unsettled)),
    )


def entry_of_nothing(schedule: Schedule, commit: str, seconds: float, *, broken: bool = False) -> Entry:
    """Return the line of a run that could not be played to its end; ``broken``: by the product's own doing."""
    faults = "; ".join(f"{fault.name} {fault.target}" for fault in schedule.faults)
    figures = ledger.counted({}, int(broken))
    verdict = BROKEN if broken else VOID
    seen = ("records", "done", "dead_lettered", "expired", "registered_ms", "exported_ms")
    nothing = dict.fromkeys(seen, 0)
    return Entry(schedule.seed, commit, _now(), round(seconds), faults=faults, verdict=verdict, **nothing, **figures)


def line_of(entry: Entry) -> str:
    """Tell a run in a line."""
    found = f"lost {entry.lost}, false {entry.false}, doubled {entry.doubled}, changed {entry.changed}"
    return (
        f"seed {entry.seed:>5}: {entry.verdict:<6} {entry.seconds:>4} s, {entry.records} records: {entry.done} done, "
        f"{entry.dead_lettered} dead-lettered, {entry.expired} exported; {found}, "
        f"abandoned {entry.abandoned}, other {entry.other}; registered in {entry.registered_ms} ms, exported in "
        f"{entry.exported_ms} ms; {entry.faults}"
    )


def whole_story(outcome: Outcome) -> Iterator[str]:
    """Tell everything about a run that is worth a look: its schedule, what happened, what was broken, the way back."""
    yield from outcome.schedule.lines()
    for fault in outcome.faults:
        lasted_s = (fault.ended_ms - fault.began_ms) / 1000
        yield f"  {fault.name} of {fault.target}, {lasted_s:.1f} s: {fault.happened or 'DID NOT HAPPEN'}"
    if outcome.void:
        yield f"  void: {outcome.void}"
    if outcome.unsettled:
        yield f"  when the time was over: {outcome.unsettled}"
    yield f"  {outcome.restarts} processes ended by themselves and were started again"
    yield from (f"  {ending}" for ending in outcome.endings)
    for kind, count in sorted(outcome.verdict.counts.items()):
        if count:
            yield f"  {kind}: {count}"
    yield from outcome.verdict.stories(STORIES)
    yield f"  logs: {outcome.directory}"
    yield f"  again: make chaos SEED={outcome.schedule.seed} RUNS=1 JOBS=1"


def inconclusive(entries: Sequence[Entry]) -> list[int]:
    """Return the seeds that have no run to conclude anything from, in order."""
    conclusive = {entry.seed for entry in entries if entry.verdict != VOID}
    return sorted({entry.seed for entry in entries} - conclusive)


def last_line(entries: Sequence[Entry]) -> str:
    """Sum up all runs: what was broken, how much was exported, and which seeds show nothing."""
    judged = [entry for entry in entries if entry.verdict != VOID]
    sums = ", ".join(
        f"{sum(getattr(entry, name) for entry in judged)} {name}"
        for name in ("lost", "false", "doubled", "changed", "abandoned", "other")
    )
    faults, records = sum(entry.fault_count for entry in judged), sum(entry.records for entry in judged)
    exporting = [entry for entry in judged if entry.expired]
    exported = f"{len(exporting)} of the runs exported {sum(entry.expired for entry in exporting)} records"
    void, seeds = len(entries) - len(judged), ", ".join(map(str, inconclusive(entries)))
    return "; ".join(
        [
            f"{len(judged)} runs, {faults} faults, {records} records: {sums}",
            exported,
            *([f"{void} void"] if void else []),
            *([f"NO CONCLUSIVE RUN of seeds {seeds}"] if seeds else []),
        ]
    )


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
