"""The named scenarios of `make chaos SCENARIO=...`: each prints its figures and says whether promises were kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.outage import WAYS, play_outage
from tests.chaos.soak import play_soak
from tests.chaos.stage import Stage


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line asked for: ``rate_per_s`` and ``records`` of an outage, ``minutes`` of a soak."""

    records: int
    rate_per_s: float
    minutes: float
    directory: Path


def outage(wanted: Wanted) -> bool:
    """Postgres, the sink, and both away while a million records flow."""
    kept = True
    for number, away in enumerate(WAYS):
        with Stage() as stage:
            played = play_outage(stage, away, wanted.records, wanted.rate_per_s, wanted.directory / f"outage-{number}")
        print(*played.lines(), sep="\n", flush=True)
        kept &= played.kept
    return kept


def soak(wanted: Wanted) -> bool:
    """A steady load; memory, threads and open files of each service stay flat."""
    with Stage() as stage:
        played = play_soak(stage, wanted.minutes, wanted.directory / "soak")
    print(*played.lines(), sep="\n", flush=True)
    return played.kept


SCENARIOS: Mapping[str, Callable[[Wanted], bool]] = {"outage": outage, "soak": soak}
