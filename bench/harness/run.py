"""A run of the benchmark: rounds of rows, each on servers of its own, everything measured kept in the ledger."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from bench.harness.ledger import Ledger
from bench.harness.machine import Busyness
from bench.harness.measurement import Origin, RoundEnd, Stamp
from bench.harness.number import shown
from bench.harness.play import BrokenRoundError, Outcome, RoundPlay
from bench.harness.process import ROOT
from bench.harness.progress import Progress
from bench.harness.rounds import complete_rounds
from bench.harness.row import Bench, Row
from bench.harness.servers import Servers

FIRST_FIGURES: Final = 6
REASON_CHARS: Final = 300


class ChangedTreeError(RuntimeError):
    """The product changed during the run: what was measured before and after belongs to different states of it."""


@dataclass(frozen=True, slots=True)
class Run:
    """One `python -m bench`.

    Attributes:
        id: unique.
        command: that a person gave.
        ledger: takes every turn.
        origin: says what is measured now; asked before each round.
        versions: of what runs.
        rounds: of each row.
        scratch: folder for the turns' own folders.
        progress: tells how far it is.
        servers: starts what a round is played on.
        busyness: how busy the machine is.
    """

    id: str
    command: str
    ledger: Ledger
    origin: Callable[[], Origin]
    versions: Mapping[str, str]
    rounds: int
    scratch: Path
    progress: Progress
    servers: Callable[[], AbstractContextManager[Servers]]
    busyness: Callable[[], Busyness]

    def play(self, rows: Sequence[Row], *, resume: bool, played: Callable[[Row], None]) -> list[str]:
        """Play rounds of rows, row by row; return what failed for good, a sentence each.

        Args:
            rows: in their order.
            resume: leave out what the ledger has complete for this commit and machine.
            played: told after a row's last round.

        Raises:
            ChangedTreeError: the product changed meanwhile.
        """
        origin = self.origin()
        to_play = {row.number: self._rounds_to_play(row, origin, resume=resume) for row in rows}
        self.progress.plan([number for number, rounds in to_play.items() for _ in rounds])
        failures: list[str] = []
        for row in rows:
            for number in to_play[row.number]:
                self._require_unchanged(origin)
                failures += self._play_round(row, number, origin)
            played(row)
        return failures

    def _rounds_to_play(self, row: Row, origin: Origin, *, resume: bool) -> list[int]:
        done = complete_rounds(self.ledger.read().entries, row.number, origin) if resume else set()
        rounds = [number for number in range(1, self.rounds + 1) if number not in done]
        if len(rounds) < self.rounds:
            kept = self.rounds - len(rounds)
            self.progress.tell(f"row {row.number}: {kept} of {self.rounds} rounds are measured on this commit already")
        return rounds

    def _require_unchanged(self, origin: Origin) -> None:
        now = self.origin()
        if now != origin:
            versions = now.commit == origin.commit
            before, after = (origin.versions, now.versions) if versions else (origin.commit, now.commit)
            raise ChangedTreeError(
                f"the product changed during the run, from {before} to {after}: what was measured stays with the "
                f"former; start again to measure the latter"
            )

    def _play_round(self, row: Row, number: int, origin: Origin) -> list[str]:
        """Play one round and close it in the ledger; return what failed for good."""
        self.progress.begin()
        title = f"row {row.number}, round {number} of {self.rounds}"
        self.progress.tell(f"{title}: {row.title}")
        busyness = self.busyness()
        if not busyness.quiet:
            self.progress.tell(f"{title}: the machine isn't quiet ({busyness}): figures suffer, ratios less so")
        folder = self.scratch / f"row-{row.number}-round-{number}"
        stamp = Stamp(self.id, origin, self.versions, "", self.command)
        failures, broken = self._played(row, number, stamp, folder)
        seconds = self.progress.end(row.number)
        noise = "" if busyness.quiet else str(busyness)
        end = RoundEnd(_now(stamp), row.number, number, seconds, tuple(failures), broken, noise)
        self.ledger.append(end)
        if end.complete:
            shutil.rmtree(folder, ignore_errors=True)
            return []
        told = [f"{title}: {failure}" for failure in [*failures, *([broken] if broken else [])]]
        self.progress.tell(f"{title}: failed; what the failed turns left is in {folder}")
        return told

    def _played(self, row: Row, number: int, stamp: Stamp, folder: Path) -> tuple[list[str], str]:
        """Play one round; return what failed for good, and why it couldn't go on, if it couldn't."""
        title = f"row {row.number}, round {number} of {self.rounds}"
        play: RoundPlay | None = None
        broken = ""
        try:
            with self.servers() as servers:
                here = replace(stamp, versions={**stamp.versions, **servers.versions})
                bench = Bench(
                    kafka=servers.kafka,
                    postgres_url=servers.postgres_url,
                    directory=folder,
                    quick=False,
                    full=stamp.origin.full,
                    say=lambda text: self.progress.tell(f"    {text}"),
                    round=number,
                )
                play = RoundPlay(
                    bench,
                    number,
                    lambda outcome: self._keep(outcome, row.number, number, here),
                    starting=lambda text: self.progress.tell(f"{title}: {text}"),
                    broken=servers.broken,
                )
                play.play(row.cases(bench), row.warm_up)
        except BrokenRoundError as error:
            broken = str(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, it ends this round; the others go on
            broken = f"{type(error).__name__}: {error}"
        if broken:
            self.progress.tell(f"{title} can't go on: {broken}")
        return [in_one_line(failure) for failure in play.failures] if play else [], in_one_line(broken)

    def _keep(self, outcome: Outcome, row: int, number: int, stamp: Stamp) -> None:
        if outcome.failure:
            self.progress.tell(f"    failed: {outcome.failure}")
        else:
            self.progress.tell(f"    {in_short(outcome.figures)}")
        scrubbed = replace(outcome, failure=in_one_line(outcome.failure))
        self.ledger.append(scrubbed.as_turn(_now(stamp), row, number))


def in_short(figures: Mapping[str, float]) -> str:
    """Return the first figures on a line."""
    some = [f"{name} {shown(value)}" for name, value in list(figures.items())[:FIRST_FIGURES]]
    return ", ".join(some) + (", ..." if len(figures) > FIRST_FIGURES else "")


def _now(stamp: Stamp) -> Stamp:
    return replace(stamp, date=datetime.now(UTC).isoformat(timespec="seconds"))


def in_one_line(reason: str) -> str:
    """Return a reason as the ledger keeps it: in short, and without where this checkout and its owner live.

    The whole of it was told, and stands in the turn's folder.
    """
    lines = [line.strip() for line in reason.splitlines() if line.strip()] or [""]
    text = f"{lines[0]} {lines[-1]}" if lines[0].endswith(":") and len(lines) > 1 else lines[0]
    for path, name in ((str(ROOT), "."), (tempfile.gettempdir(), "$TMPDIR"), (str(Path.home()), "~")):
        text = text.replace(path, name) if path != "/" else text
    return text if len(text) <= REASON_CHARS else f"{text[:REASON_CHARS]}..."
