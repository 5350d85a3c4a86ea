"""What each test costs, for `docs/decisions/0042`: wall time and CPU seconds of its worker's process tree.

    pytest -p tests.support.costs --costs FOLDER ...    records
    python -m tests.support.costs FOLDER [DEPTH]        prints a table per folder (DEPTH 2), file or test

The broker and the Postgres that all workers share belong to no worker. Their CPU seconds are read twice a second and
divided among the tests that ran at that time.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

SAMPLE_S = 0.5


def cpu_of_tree(root: int) -> float:
    """Return the CPU seconds of a process, its live descendants, and the ended ones that they have waited for."""
    total = 0.0
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(root)
        for each in (process, *process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                total += sum(each.cpu_times()[:4])  # user, system, and both of the ended children
    return total


class Costs:
    """Records each test of this process, set-up and teardown included."""

    def __init__(self, file: Path) -> None:
        self._file = file.open("a", encoding="utf-8")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[object]:
        began, before = time.time(), cpu_of_tree(os.getpid())
        result = yield
        line = {"test": item.nodeid, "began": began, "ended": time.time(), "cpu": cpu_of_tree(os.getpid()) - before}
        print(json.dumps(line), file=self._file, flush=True)
        return result


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--costs``."""
    parser.addoption("--costs", metavar="FOLDER", help="write what each test costs into files of this folder")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Record tests in a worker, and the shared servers where the workers are started."""
    folder = session.config.getoption("costs")
    if folder is None:
        return
    Path(folder).mkdir(parents=True, exist_ok=True)
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    session.config.pluginmanager.register(Costs(Path(folder, f"{worker}.jsonl")))
    if session.config.getoption("numprocesses", None):
        threading.Thread(target=_sample, args=(Path(folder, "shared.jsonl"),), daemon=True).start()


def _sample(file: Path) -> None:
    """Write what the children of this process that aren't workers have used, until the process ends."""
    with file.open("a", encoding="utf-8") as out:
        while True:
            used = sum(cpu_of_tree(child.pid) for child in psutil.Process().children() if not _is_worker(child))
            print(json.dumps([time.time(), used]), file=out, flush=True)
            time.sleep(SAMPLE_S)


def _is_worker(process: psutil.Process) -> bool:
    """Return whether execnet started a process, which has that in its command line."""
    try:
        return any("exec(eval(" in argument for argument in process.cmdline())
    except psutil.NoSuchProcess:
        return True


def shared(folder: Path, tests: list[dict[str, Any]]) -> dict[str, float]:
    """Divide the shared servers' CPU seconds among the tests that ran in each interval."""
    file = folder / "shared.jsonl"
    samples = [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []
    starts = sorted(tests, key=lambda test: test["began"])
    parts: dict[str, float] = defaultdict(float)
    running: list[dict[str, Any]] = []
    for (began, before), (ended, after) in itertools.pairwise(samples):
        while starts and starts[0]["began"] < ended:
            running.append(starts.pop(0))
        overlaps = [(test, min(ended, test["ended"]) - max(began, test["began"])) for test in running]
        whole = sum(overlap for _, overlap in overlaps if overlap > 0)
        for test, overlap in overlaps:
            if overlap > 0:
                parts[test["test"]] += max(after - before, 0.0) * overlap / whole
        running = [test for test in running if test["ended"] > ended]
    return parts


def main() -> int:
    """Print tests, wall seconds, own and shared CPU seconds of each part of the suite."""
    folder, depth = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 3
    files = [file for file in sorted(folder.glob("*.jsonl")) if file.name != "shared.jsonl"]
    tests = [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]
    parts = shared(folder, tests)
    sums: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0.0, 0.0])
    for test in tests:
        path = test["test"].replace("::", "/", 1).split("/")
        for place in ("/".join(path[:depth]), "all"):
            for column, value in enumerate((1, test["ended"] - test["began"], test["cpu"], parts[test["test"]])):
                sums[place][column] += value
    print("| part | tests | wall s | own CPU s | shared CPU s |\n|---|--:|--:|--:|--:|")
    for place, (count, wall, own, given) in sorted(sums.items(), key=lambda entry: -entry[1][2] - entry[1][3]):
        print(f"| {place} | {count} | {wall:.1f} | {own:.1f} | {given:.1f} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
