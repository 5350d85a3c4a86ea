"""Steps, progress bars and tables on a terminal; elsewhere without progress, except for where it ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

PLAIN_WIDTH = 120
INDENT = " " * 9


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

    @contextmanager
    def progress(self, totals: Mapping[str, int]) -> Iterator[Callable[..., None]]:
        """Show bars of these totals while a step lasts.

        The block gets a function that shows how far bars are, by name; ``total`` is their new total if it has changed,
        ``note`` follows the count.
        """
        columns = (
            TextColumn(INDENT + "{task.description:<24}"),
            BarColumn(30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("[dim]{task.fields[note]}"),
        )
        with Progress(*columns, console=self._console) as progress:
            tasks = {name: progress.add_task(name, total=total, note="") for name, total in totals.items()}

            def show(completed: Mapping[str, int], total: int | None = None, note: str = "") -> None:
                for name, count in completed.items():
                    progress.update(tasks[name], completed=count, total=total, note=note)

            yield show
