"""The data file: what was measured, one JSON object per line.

A line with `commit` describes a run; `figures` is a turn that measured and `failure` one that didn't; `seconds` ends a
round. A run replaces what the file has of its rows and keeps the other rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.harness.play import Turn
from bench.harness.row import Round

Json = Mapping[str, Any]


@dataclass(slots=True)
class Data:
    """The measurements of one file."""

    path: Path
    lines: list[Json] = field(default_factory=list)

    @staticmethod
    def read(path: Path) -> Data:
        """Return what a file holds; a missing file is empty."""
        text = path.read_text("utf-8") if path.exists() else ""
        return Data(path, [json.loads(line) for line in text.splitlines()])

    def begin(self, run: Json, rows: Sequence[int]) -> None:
        """Drop what was measured of these rows, and describe the run that measures them."""
        kept = [line for line in self.lines if "row" in line and line["row"] not in rows]
        runs = {line["run"] for line in kept}
        described = [line for line in self.lines if "commit" in line and line["run"] in runs]
        self.lines = [*described, run, *kept]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in self.lines), "utf-8")

    def add(self, line: Json) -> None:
        """Append a line."""
        self.lines.append(line)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(line, ensure_ascii=False)}\n")

    def add_turn(self, run: str, row: int, round_: int, turn: Turn) -> None:
        """Append a turn of a round."""
        told = {"failure": turn.failure} if turn.failure else {"figures": dict(turn.figures)}
        place = {"run": run, "row": row, "round": round_, "case": turn.case}
        self.add({**place, "contender": turn.contender, "turn": turn.number, **told})

    def rounds(self, row: int) -> list[Round]:
        """Return what the rounds of a row measured."""
        rounds: dict[int, Round] = {}
        for line in self.lines:
            if line.get("row") == row and "case" in line:
                found = rounds.setdefault(line["round"], Round(line["round"]))
                place = (line["case"], line["contender"])
                if "figures" in line:
                    found.turns.setdefault(place, []).append(line["figures"])
                else:
                    found.failures[place] = line["failure"]
        return list(rounds.values())

    def ends(self, row: int) -> list[Json]:
        """Return how the rounds of a row ended: `seconds`, `date` and `noise`."""
        return [line for line in self.lines if line.get("row") == row and "seconds" in line]

    def runs(self, row: int) -> list[Json]:
        """Return the runs that measured a row."""
        ids = {line["run"] for line in self.lines if line.get("row") == row}
        return [line for line in self.lines if "commit" in line and line["run"] in ids]
