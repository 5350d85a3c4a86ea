"""The named scenarios of `make chaos SCENARIO=...`: each prints its figures, and returns them with its verdict."""

from __future__ import annotations

import time
import traceback
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

        def play(stage: Stage, number: int = number, away: tuple[str, ...] = away) -> Outage:
            return play_outage(stage, away, wanted.records, wanted.rate_per_s, wanted.directory / f"outage-{number}")

        yield _played(f"outage of {' and '.join(away)}", commit, play)


def soak(wanted: Wanted, commit: str) -> Iterator[ScenarioEntry]:
    """A steady load; memory, threads and open files of each service stay flat."""

    def play(stage: Stage) -> Soak:
        return play_soak(stage, wanted.minutes, wanted.directory / "soak")

    yield _played(f"soak of {wanted.minutes:g} minutes", commit, play)


def _played(name: str, commit: str, play: Callable[[Stage], Outage | Soak]) -> ScenarioEntry:
    """Play one on a stage of its own; what breaks it off is its result."""
    began = time.monotonic()
    try:
        with Stage() as stage:
            played = play(stage)
    except Exception as error:  # noqa: BLE001 - told, and written down as the reason
        print(f"{name}:", traceback.format_exc(), sep="\n", flush=True)
        told = " ".join(f"broken off by {type(error).__name__}: {error}".split())
        return _entry(name, commit, began, 0, told, BROKEN)
    print(*played.lines(), sep="\n", flush=True)
    return _entry(name, commit, began, played.records, played.figures(), KEPT if played.kept else BROKEN)


def _entry(name: str, commit: str, began: float, records: int, figures: str, verdict: str) -> ScenarioEntry:
    return ScenarioEntry(
        scenario=name,
        commit=commit,
        date=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        seconds=round(time.monotonic() - began),
        records=records,
        figures=figures,
        verdict=verdict,
    )


SCENARIOS: Mapping[str, Callable[[Wanted, str], Iterator[ScenarioEntry]]] = {"outage": outage, "soak": soak}
