"""A row played once, as small as it gets, so that tests notice when it no longer can be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.harness.judgement import Judgement, judgements
from bench.harness.measurement import Origin, Stamp, Turn
from bench.harness.play import Outcome, RoundPlay
from bench.harness.plot import drawn
from bench.harness.rounds import PlayedRound
from bench.harness.row import Bench, Round, Row


@dataclass(frozen=True, slots=True)
class Smoke:
    """What came of it.

    Attributes:
        failures: what failed twice; as it is to be, none.
        round: what was measured.
        judgements: what came out of the row's lines; their verdicts mean nothing at this size, but none is `failed`.
        plots: the row's plots as SVG.
    """

    failures: Sequence[str]
    round: Round
    judgements: Sequence[Judgement]
    plots: Sequence[str]


def smoke(
    row: Row, kafka: str, postgres_url: str, directory: Path, *, say: Callable[[str], None] = lambda _: None
) -> Smoke:
    """Play a row with `quick` set and work out its lines and plots; nothing is written to a ledger.

    Args:
        row: the row.
        kafka: bootstrap servers.
        postgres_url: of Postgres.
        directory: for the turns' folders.
        say: told how far it is.
    """
    turns: list[Turn] = []
    stamp = Stamp("smoke", Origin("smoke", "smoke", full=False), {}, "")

    def keep(outcome: Outcome) -> None:
        turns.append(outcome.as_turn(stamp, row.number, 1))

    bench = Bench(kafka, postgres_url, directory, quick=True, full=False, say=say)
    play = RoundPlay(bench, 1, keep, starting=say)
    play.play(row.cases(bench), row.warm_up)
    measured = PlayedRound(turns, None).as_round()
    return Smoke(play.failures, measured, judgements(row, [measured]), [drawn(plot, [measured]) for plot in row.plots])
