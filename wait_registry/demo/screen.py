"""Steps, progress bars and tables on a terminal; plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

PLAIN_WIDTH = 120
PLAIN_EVERY_S = 5.0
INDENT = " " * 9


@dataclass(slots=True)
class Bar:
    """One progress bar; ``note`` follows its count."""

    name: str
    total: int
    completed: int = 0
    note: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.completed}/{self.total}{' ' + self.note if self.note else ''}"


@dataclass(slots=True)
class Bars:
    """The bars of one step; set their fields, then call ``show``."""

    bars: list[Bar]
    _console: Console
    _progress: Progress | None = None
    _tasks: list[TaskID] = field(default_factory=list)
    _shown_s: float = 0.0

    def show(self) -> None:
        """Update the terminal; without one, print a line every few seconds."""
        if self._progress is not None:
            for task, bar in zip(self._tasks, self.bars, strict=True):
                self._progress.update(task, total=bar.total, completed=bar.completed, note=bar.note)
        elif time.monotonic() >= self._shown_s + PLAIN_EVERY_S:
            self._print()

    def close(self) -> None:
        """Show the last state."""
        if self._progress is not None:
            self.show()
        else:
            self._print()

    def _print(self) -> None:
        self._shown_s = time.monotonic()
        self._console.print(f"{INDENT}{' | '.join(map(str, self.bars))}", highlight=False, soft_wrap=True)


class Screen:
    """Writes to standard output."""

    def __init__(self, console: Console | None = None) -> None:
        plain = Console()
        self._console = console or (plain if plain.is_terminal else Console(width=PLAIN_WIDTH))
        self._started_s = time.monotonic()

    @property
    def elapsed_s(self) -> float:
        """Return seconds since the beginning."""
        return time.monotonic() - self._started_s

    def step(self, text: str) -> None:
        """Print the title of a step."""
        self._console.print(f"\n[dim]{self.elapsed_s:5.1f} s[/]  [bold]{text}[/]", highlight=False, soft_wrap=True)

    def note(self, text: str) -> None:
        """Print a line below the current step."""
        self._console.print(f"{INDENT}{text}", highlight=False, soft_wrap=True)

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table; columns whose name begins with ``#`` are numbers."""
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for column in columns:
            table.add_column(column.removeprefix("#"), justify="right" if column.startswith("#") else "left")
        for row in rows:
            table.add_row(*row)
        self.note("")
        self.note(f"[bold]{title}[/]")
        self._console.print(Padding(table, (0, 0, 1, len(INDENT)), expand=False))

    @contextmanager
    def progress(self, bars: Sequence[Bar]) -> Iterator[Bars]:
        """Show bars while a step lasts."""
        if not self._console.is_terminal:
            plain = Bars(list(bars), self._console)
            yield plain
            plain.close()
            return
        columns = (
            TextColumn(INDENT + "{task.description:<24}"),
            BarColumn(30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("[dim]{task.fields[note]}"),
        )
        with Progress(*columns, console=self._console) as progress:
            tasks = [progress.add_task(bar.name, total=bar.total, note=bar.note) for bar in bars]
            shown = Bars(list(bars), self._console, progress, tasks)
            yield shown
            shown.close()
