"""The named scenarios of `make chaos SCENARIO=...`: each prints its figures, and returns them with its verdict."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.outage import WAYS, play_outage
from tests.chaos.report import BROKEN, KEPT, ScenarioEntry, now
from tests.chaos.soak import play_soak
from tests.chaos.stage import ScenarioPlayed, Stage


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line asked for: ``rate_per_s`` and ``records`` of an outage, ``minutes`` of a soak."""

    records: int
    rate_per_s: float
    minutes: float
    directory: Path


def outage(wanted: Wanted, commit: str) -> Iterator[ScenarioEntry]:
    """Postgres, the sink, and both away while a million records flow."""
    for away in WAYS:
        name = " and ".join(away)
        given = (away, wanted.records, wanted.rate_per_s, wanted.directory / f"outage-{'-'.join(away)}")
        yield _played(f"outage of {name}", commit, play_outage, *given)


def soak(wanted: Wanted, commit: str) -> Iterator[ScenarioEntry]:
    """A steady load; memory, threads and open files of each service stay flat."""
    yield _played(f"soak of {wanted.minutes:g} minutes", commit, play_soak, wanted.minutes, wanted.directory / "soak")


def _played(name: str, commit: str, play: Callable[..., ScenarioPlayed], *given: object) -> ScenarioEntry:
    """Play one on a stage of its own; what interrupts it is its result."""
    began = time.monotonic()
    try:
        with Stage() as stage:
            played = play(stage, *given)
    except Exception as error:  # noqa: BLE001 - told, and written down as the reason
        print(f"{name}:", traceback.format_exc(), sep="\n", flush=True)
        played = ScenarioPlayed(0, [], [" ".join(f"interrupted by {type(error).__name__}: {error}".split())])
    told = [*played.lines, *(f"WRONG: {problem}" for problem in played.wrong)]
    print(f"{name}, {played.records} records:", *told, sep="\n  ", flush=True)
    seconds, verdict = round(time.monotonic() - began), BROKEN if played.wrong else KEPT
    figures = "; ".join(" ".join(line.split()) for line in told)
    return ScenarioEntry(name, commit, now(), seconds, played.records, figures, verdict)


SCENARIOS: Mapping[str, Callable[[Wanted, str], Iterator[ScenarioEntry]]] = {"outage": outage, "soak": soak}
