"""The tables of what each contender measured, and of what each contender is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from bench.harness.markdown import table
from bench.harness.measurement import Turn
from bench.harness.number import shown
from bench.harness.rounds import PlayedRound
from bench.harness.row import Round
from bench.harness.spread import spread_of


def figures_tables(playings: Sequence[PlayedRound]) -> str:
    """Return every contender's figures, medians over the rounds; cases with the same figures share a table."""
    rounds = [playing.as_round() for playing in playings]
    seen = _seen(turn for playing in playings for turn in playing.turns)
    names = {pair: _figure_names(rounds, pair) for pair in seen}
    cases = {case: _union(names[pair] for pair in seen if pair[0] == case) for case, _ in seen}
    parts = []
    for columns, group in groupby(cases, key=lambda case: cases[case]):
        together = set(group)
        pairs = [pair for pair in seen if pair[0] in together]
        lines = [[*pair, *(_figure(rounds, pair, name) for name in columns)] for pair in pairs]
        parts.append(table(("case", "contender", *columns), lines, right=range(2, 2 + len(columns))))
    return "\n\n".join(parts)


def contenders_table(playings: Sequence[PlayedRound]) -> str:
    """Return what each contender is and what it doesn't do; nothing where there is nothing to say."""
    lacks: dict[str, str] = {}
    versions: dict[str, str] = {}
    for turn in (turn for playing in playings for turn in playing.turns):
        lacks[turn.contender] = turn.lacks or lacks.get(turn.contender, "")
        versions[turn.contender] = turn.version or versions.get(turn.contender, "")
    lines = [(name, versions[name], lacks[name]) for name in lacks if lacks[name] or versions[name]]
    return table(("contender", "version", "does not do"), lines) if lines else ""


def _seen(turns: Iterable[Turn]) -> list[tuple[str, str]]:
    """Return each case with each of its contenders, in the order of the first round; a case's stand together."""
    cases: dict[str, dict[str, None]] = {}
    for turn in turns:
        cases.setdefault(turn.case, {})[turn.contender] = None
    return [(case, contender) for case, contenders in cases.items() for contender in contenders]


def _figure_names(rounds: Sequence[Round], pair: tuple[str, str]) -> tuple[str, ...]:
    return _union(tuple(figures) for round_ in rounds for figures in round_.turns.get(pair, ()))


def _union(groups: Iterable[Sequence[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for group in groups for name in group))


def _figure(rounds: Sequence[Round], pair: tuple[str, str], name: str) -> str:
    values = [round_.figure(*pair, name) for round_ in rounds if round_.has(*pair, name)]
    if values:
        return shown(spread_of(values).median)
    return "failed" if any(pair in round_.failures for round_ in rounds) else "–"
