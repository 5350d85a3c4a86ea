"""The named scenarios of `make chaos SCENARIO=...`: each prints its figures, and returns them with its verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.chaos.ledger import BROKEN, KEPT, ScenarioEntry
from tests.chaos.outage import WAYS, Outage, play_outage
from tests.chaos.soak import Soak, play_soak
from tests.chaos.stage import Stage


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line asked for: ``rate_per_s`` and ``records`` of an outage, ``minutes`` of a soak."""

    records: int
    rate_per_s: float
    minutes: float
    directory: Path


def outage(wanted: Wanted, commit: str) -> Iterator[ScenarioEntry]:
    """Postgres, the sink, and both away while a million records flow."""
    for number, away in enumerate(WAYS):
        began = time.monotonic()
        with Stage() as stage:
            played = play_outage(stage, away, wanted.records, wanted.rate_per_s, wanted.directory / f"outage-{number}")
        yield _told(f"outage of {' and '.join(away)}", commit, played, began)


def soak(wanted: Wanted, commit: str) -> Iterator[ScenarioEntry]:
    """A steady load; memory, threads and open files of each service stay flat."""
    began = time.monotonic()
    with Stage() as stage:
        played = play_soak(stage, wanted.minutes, wanted.directory / "soak")
    yield _told(f"soak of {wanted.minutes:g} minutes", commit, played, began)


def _told(name: str, commit: str, played: Outage | Soak, began: float) -> ScenarioEntry:
    print(*played.lines(), sep="\n", flush=True)
    return ScenarioEntry(
        scenario=name,
        commit=commit,
        date=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        seconds=round(time.monotonic() - began),
        records=played.records,
        figures=played.figures(),
        verdict=KEPT if played.kept else BROKEN,
    )


SCENARIOS: Mapping[str, Callable[[Wanted, str], Iterator[ScenarioEntry]]] = {"outage": outage, "soak": soak}
