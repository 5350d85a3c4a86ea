"""Row 8: how long the console's pages take among a million dead letters, or ten, and the memory that it needs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from bench.contenders.console_pages import PAGES, WIDE, measure_pages, stand_dead_letters
from bench.contenders.product import drop, install, settings_of
from bench.harness.row import Bench, Case, Contender, Figures, Line, Row
from wait_registry.settings.tree import Settings

CASE: Final = "1 million dead letters"
MANY: Final = "10 million dead letters"
CONSOLE: Final = "console"
PAGE_MS: Final = 300.0
MEMORY_MB: Final = 200.0
WHY: Final = "../docs/decisions/0038-pages-within-300-ms.md"


def _settings(bench: Bench, name: str) -> Settings:
    settings = settings_of(bench, f"bench.r8.{name}", schema=f"bench_r8_{name}")
    # A page that takes longer than the usual limit is measured, too.
    console = settings.console.model_copy(update={"page_timeout_s": 60.0})
    return settings.model_copy(update={"console": console})


def _prepare(name: str, rows: int, bench: Bench) -> None:
    settings = _settings(bench, name)
    drop(settings)
    install(bench, settings)
    stand_dead_letters(bench, settings, rows)


def _measure(name: str, times: int, bench: Bench) -> Figures:
    return measure_pages(bench, _settings(bench, name), times)


def _cases(bench: Bench) -> Sequence[Case]:
    cases = [_case(CASE, "one", bench.size(2_000, 1_000_000), bench.size(4, 25))]
    # What breaks first takes seconds each time.
    return [*cases, _case(MANY, "ten", 10_000_000, 8)] if bench.first_of_full else cases


def _case(title: str, name: str, rows: int, times: int) -> Case:
    return Case(title, [Contender(CONSOLE, partial(_measure, name, times))], prepare=partial(_prepare, name, rows))


def _page(case: str, name: str, most: float | None) -> Line:
    return Line(f"{case}: {name.replace('_', ' ')}, p95", (case, CONSOLE, f"{name}_p95_ms"), "ms", most=most, why=WHY)


LINES: Final = (
    *(_page(CASE, name, None if name == WIDE else PAGE_MS) for name in PAGES),
    Line("Memory after all pages", (CASE, CONSOLE, "pages_peak_mb"), "MB", most=MEMORY_MB),
    *(_page(MANY, name, None) for name in PAGES),
    Line("Memory with a value of 10 MB shown and downloaded", (CASE, CONSOLE, "peak_mb"), "MB", most=MEMORY_MB),
)

ROW: Final = Row(8, "The console's pages", _cases, LINES)
