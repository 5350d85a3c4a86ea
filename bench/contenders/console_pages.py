"""The console, run as a user runs it, and asked for its pages one after the other."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from statistics import quantiles
from typing import Final

from bench.contenders.product import connection_to, running
from bench.contenders.standing_rows import stand
from bench.harness.row import Bench, Figures
from wait_registry.settings.tree import Settings

SQL: Final = Path(__file__).with_name("standing_dead_letters.sql")
WAITING: Final = 100_000
SEEN_BY_ALL: Final = "select relallvisible >= 0.9 * relpages from pg_class where oid = 'dead_letter'::regclass"
LONGEST_S: Final = 1_200.0
# What an operator opens in an incident, with the windows that the pages have by themselves.
PAGES: Final[Mapping[str, str]] = {
    "now": "/",
    "instances": "/instances",
    "timeline": "/timeline",
    "system": "/system",
    "jobs": "/jobs",
    "job": "/jobs/job-7",
    "help": "/help",
    "counts": "/dead-letters",
    "counts_of_30_days": "/dead-letters?since=30d&by=error,topic,reason",
    "list": "/dead-letters?by=none",
    "list_of_one_error": "/dead-letters?by=none&since=30d&where=error%3Derrors.Error7&where=state%3Dopen",
    "list_by_message": "/dead-letters?by=none&where=message~order%2017",
    "dead_letter": "/dead-letters/bench.dlq/0/100",
    "record_by_key": "/records?find=customer-17",
    "record_by_wait_id": "/records?find=00000000-0000-8000-9000-000000000064",
}
LARGE: Final = "/dead-letters/bench.large/0/0"
# It looks through all rows of its window; its bound is the time limit of a page.
WIDE: Final = "counts_of_30_days"


def stand_dead_letters(bench: Bench, settings: Settings, rows: int) -> None:
    """Fill empty tables with dead letters, marks, jobs and registrations."""
    began = time.monotonic()
    stand(bench, settings, bench.size(200, WAITING))
    with connection_to(settings) as connection:
        for statement in SQL.read_text("utf-8").split(";\n"):
            connection.execute(statement.encode(), {"rows": rows})
        # As some minutes after the rows came; a snapshot of another connection may keep a vacuum from it.
        connection.execute("vacuum (analyze) dead_letter")
        while connection.execute(SEEN_BY_ALL.encode()).fetchone() != (True,):
            if time.monotonic() - began > LONGEST_S:
                raise TimeoutError("a snapshot of another connection keeps dead_letter from being vacuumed")
            time.sleep(1)
            connection.execute("vacuum dead_letter")
    bench.say(f"{settings.postgres.schema_name} holds {rows} dead letters after {time.monotonic() - began:.0f} s")


def measure_pages(bench: Bench, settings: Settings, times: int) -> Figures:
    """Ask for each page a number of times; return the 95th percentile of each, and the memory of the console.

    `peak_mb` is the most resident memory that the console has had, with a value of 10 MB open and downloaded.
    """
    figures = {}
    with running(bench, "console", settings) as console:
        console.await_ready()
        for name, path in PAGES.items():
            took_ms = [_took_ms(console.address + path) for _ in range(times)]
            figures[f"{name}_p95_ms"] = quantiles(took_ms[1:], n=20)[-1]
        figures["pages_peak_mb"] = console.peak_mb()["python_peak_mb"]
        for path in (LARGE, f"{LARGE}/value"):
            _took_ms(console.address + path)
        figures["peak_mb"] = console.peak_mb()["python_peak_mb"]
        console.stop()
    return figures


def _took_ms(address: str) -> float:
    began = time.perf_counter()
    with urllib.request.urlopen(address, timeout=90) as answer:
        answer.read()
    return (time.perf_counter() - began) * 1000
