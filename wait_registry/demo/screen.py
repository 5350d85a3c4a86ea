"""Steps, progress bars and tables on a terminal; plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

PLAIN_WIDTH = 120
PLAIN_EVERY_S = 5.0
INDENT = " " * 9


class Bars:
    """The progress bars of one step, by name; without a terminal, a line every few seconds."""

    def __init__(self, console: Console, totals: Mapping[str, int]) -> None:
        self._console = console
        self._progress = Progress(
            TextColumn(INDENT + "{task.description:<24}"),
            BarColumn(30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("[dim]{task.fields[note]}"),
            console=console,
        )
        self._tasks = {name: self._progress.add_task(name, total=total, note="") for name, total in totals.items()}
        self._printed_s = 0.0

    def show(self, completed: Mapping[str, int], total: int | None = None, note: str = "") -> None:
        """Show how far bars are; ``total`` is their new total if it has changed, ``note`` follows the count."""
        for name, count in completed.items():
            self._progress.update(self._tasks[name], completed=count, total=total, note=note)
        if not self._console.is_terminal and time.monotonic() >= self._printed_s + PLAIN_EVERY_S:
            self._print()

    @contextmanager
    def shown(self) -> Iterator[Bars]:
        """Show the bars while the block lasts, and how far they got."""
        if self._console.is_terminal:
            with self._progress:
                yield self
        else:
            yield self
            self._print()

    def _print(self) -> None:
        self._printed_s = time.monotonic()
        bars = (
            f"{task.description} {task.completed:.0f}/{task.total:.0f} {task.fields['note']}".rstrip()
            for task in self._progress.tasks
        )
        self._console.print(f"{INDENT}{' | '.join(bars)}", highlight=False, soft_wrap=True)


class Screen:
    """Writes to standard output."""

    def __init__(self, console: Console | None = None) -> None:
        plain = Console()
        self._console = console or (plain if plain.is_terminal else Console(width=PLAIN_WIDTH))
        self._started_s = time.monotonic()

    def step(self, text: str) -> None:
        """Print the title of a step, with the seconds since the beginning."""
        elapsed_s = time.monotonic() - self._started_s
        self._console.print(f"\n[dim]{elapsed_s:5.1f} s[/]  [bold]{text}[/]", highlight=False, soft_wrap=True)

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
        self.note(f"\n{INDENT}[bold]{title}[/]")
        self._console.print(Padding(table, (0, 0, 1, len(INDENT)), expand=False))

    def progress(self, totals: Mapping[str, int]) -> AbstractContextManager[Bars]:
        """Show bars of these totals while a step lasts."""
        return Bars(self._console, totals).shown()
