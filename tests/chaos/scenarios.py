"""The named scenarios of `make chaos SCENARIO=...`: each prints its figures, and returns them with its verdict."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from tests.chaos.outage import WAYS, play_outage
from tests.chaos.report import BROKEN, KEPT, Played, ScenarioEntry, now
from tests.chaos.soak import play_soak
from tests.chaos.stage import Stage

NAMES: Final = ("outage", "soak")


def play_scenario(
    name: str, folder: Path, commit: str, *, records: int, rate_per_s: float, minutes: float
) -> Iterator[ScenarioEntry]:
    """Play a scenario: an outage of Postgres, of the sink, and of both, or a soak.

    Args:
        name: of the scenario.
        folder: for its logs.
        commit: what is run.
        records: how many flow during each outage.
        rate_per_s: offered load of an outage, records per second.
        minutes: how long the soak takes.
    """
    if name == "soak":
        yield _played(f"soak of {minutes:g} minutes", commit, play_soak, minutes, folder / "soak")
    for down in WAYS if name == "outage" else ():
        given = (down, records, rate_per_s, folder / f"outage-{'-'.join(down)}")
        yield _played(f"outage of {' and '.join(down)}", commit, play_outage, *given)


def _played(name: str, commit: str, play: Callable[..., Played], *given: object) -> ScenarioEntry:
    """Play one on a stage of its own; an error that interrupts it is its result."""
    began = time.monotonic()
    try:
        with Stage() as stage:
            played = play(stage, *given)
    except Exception as error:  # noqa: BLE001 - printed, and listed as the reason
        print(f"{name}:", traceback.format_exc(), sep="\n", flush=True)
        played = Played(0, [], [" ".join(f"interrupted by {type(error).__name__}: {error}".split())])
    lines = [*played.lines, *(f"WRONG: {problem}" for problem in played.wrong)]
    print(f"{name}, {played.records} records:", *lines, sep="\n  ", flush=True)
    seconds, verdict = round(time.monotonic() - began), BROKEN if played.wrong else KEPT
    return ScenarioEntry(name, commit, now(), seconds, played.records, "; ".join(lines), verdict)
