"""What runs come to: a line each, the story of what was broken, and the sum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from tests.chaos.run import Outcome

KEPT, BROKEN, VOID = "kept", "broken", "void"
STORIES: Final = 3
_FIGURES: Final = ("records", "done", "dead_lettered", "expired", "redelivered")
_NO_FIGURES: Final[Mapping[str, int]] = dict.fromkeys(_FIGURES, 0)


class Run(NamedTuple):
    """What a run came to: ``found`` counts what was broken, by rule; ``story`` is empty if the run was kept."""

    seed: int
    verdict: str
    seconds: float
    faults: Sequence[str] = ()
    figures: Mapping[str, int] = _NO_FIGURES
    found: Mapping[str, int] = {}
    story: str = ""

    def __str__(self) -> str:
        figures = ", ".join(f"{self.figures[name]} {name}" for name in _FIGURES)
        found = ", ".join(f"{name} {count}" for name, count in sorted(self.found.items())) or "nothing broken"
        return f"seed {self.seed}: {self.verdict} in {self.seconds:.0f} s; {figures}; {found}; {'; '.join(self.faults)}"


def run_of(outcome: Outcome) -> Run:
    """Return what a run came to that was played to its end."""
    found = Counter(outcome.verdict.counts) + Counter(exit=len(outcome.endings), unsettled=bool(outcome.unsettled))
    verdict = BROKEN if found else VOID if outcome.void else KEPT
    story = "" if verdict == KEPT else "\n".join(_whole_story(outcome))
    faults = [f"{fault.name} {fault.target}" for fault in outcome.faults]
    return Run(outcome.schedule.seed, verdict, outcome.seconds, faults, outcome.verdict.figures, found, story)


def _whole_story(outcome: Outcome) -> Iterator[str]:
    """Yield all that helps to understand a run: its schedule, what happened, what was broken, how to play it again."""
    yield str(outcome.schedule)
    for fault in outcome.faults:
        lasted_s = (fault.ended_ms - fault.began_ms) / 1000
        yield f"  {fault.name} of {fault.target}, {lasted_s:.1f} s: {fault.happened or 'DID NOT HAPPEN'}"
    if outcome.void:
        yield f"  void: {outcome.void}"
    if outcome.unsettled:
        yield f"  not settled in time: {outcome.unsettled}"
    yield from (f"  {ending}" for ending in outcome.endings)
    yield from outcome.verdict.stories(STORIES)
    yield f"  logs: {outcome.directory}"
    yield f"  again: make chaos SEED={outcome.schedule.seed} RUNS=1 JOBS=1"


def summary(runs: Sequence[Run]) -> str:
    """Return the sum over the last run of each seed: what was broken and exported, and which seeds show nothing."""
    judged = [run for run in runs if run.verdict != VOID]
    exported = [run.figures["expired"] + run.figures["redelivered"] for run in judged]
    found = sum((Counter(run.found) for run in judged), Counter[str]())
    seeds = ", ".join(str(run.seed) for run in runs if run.verdict == VOID)
    parts = [
        f"{len(judged)} runs, {sum(len(run.faults) for run in judged)} faults, "
        f"{sum(run.figures['records'] for run in judged)} records",
        ", ".join(f"{name} {count}" for name, count in sorted(found.items())) or "nothing broken",
        f"{sum(map(bool, exported))} of the runs exported {sum(exported)} records",
        *([f"NO CONCLUSIVE RUN of seeds {seeds}"] if seeds else []),
    ]
    return "; ".join(parts)
