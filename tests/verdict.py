"""Run pytest, and say what a failure means.

    python -m tests.verdict ARGUMENTS OF PYTEST
    python -m tests.verdict --flaky 20      each entry of tests/flaky.toml, 20 times

If at most three tests failed, they run once more, alone, and both outcomes are printed. The second one explains the
first and doesn't excuse it: the status is 0 only if each of them is in tests/flaky.toml and passed alone.
"""

from __future__ import annotations

import datetime
import json
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

FILE = Path(__file__).with_name("flaky.toml")
MOST_AGAIN = 3
MOST_ENTRIES = 3
MOST_DAYS = 14


class Flaky(NamedTuple):
    """A test that may fail once until a day, and why."""

    test: str
    reason: str
    since: datetime.date
    until: datetime.date


def flaky(file: Path = FILE) -> list[Flaky]:
    """Return the entries.

    Raises:
        ValueError: there are too many, or one has no reason or too long a time.
    """
    found = [Flaky(**entry) for entry in tomllib.loads(file.read_text("utf-8")).get("flaky", [])]
    if len(found) > MOST_ENTRIES:
        raise ValueError(f"{file} has {len(found)} entries, expected at most {MOST_ENTRIES}: fix one of these tests")
    for entry in found:
        if not entry.reason or not 0 <= (entry.until - entry.since).days <= MOST_DAYS:
            raise ValueError(f"{entry.test}: expected a reason and at most {MOST_DAYS} days from since to until")
    return found


def verdict(arguments: Sequence[str], entries: Sequence[Flaky], today: datetime.date) -> int:
    """Run pytest with these arguments, and failed tests again; return the exit status."""
    status, failed = _run(arguments)
    if status != pytest.ExitCode.TESTS_FAILED or not failed or len(failed) > MOST_AGAIN:
        return status
    print(f"\n{len(failed)} failed, and run once more, alone, to explain why:", *failed, sep="\n  ", flush=True)
    # Without pytest's closing line: that of the first run stays the last one.
    again, failed_again = _run(["-qq", *(one for one in arguments if one.startswith("--stack")), *failed])
    excused = {entry.test for entry in entries if today <= entry.until}
    for test in failed:
        second = "failed" if test in failed_again or again not in (0, 1) else "passed"
        listed = "in" if test in excused else "not in"
        print(f"FLAKY: {test} failed among others and {second} alone; {listed} {FILE.name}")
    if again == 0 and excused.issuperset(failed):
        return 0
    return again or status


def _run(arguments: Sequence[str]) -> tuple[int, list[str]]:
    """Return the exit status and the tests that failed; none if what failed isn't a test."""
    with tempfile.TemporaryDirectory() as cache:
        status = subprocess.call([sys.executable, "-m", "pytest", "-o", f"cache_dir={cache}", *arguments])
        file = Path(cache, "v", "cache", "lastfailed")
        failed = sorted(json.loads(file.read_text("utf-8"))) if file.exists() else []
    return status, failed if all("::" in test for test in failed) else []


def main(arguments: list[str]) -> int:
    # pytest gets Ctrl-C too, ends its servers and says what was interrupted.
    signal.signal(signal.SIGINT, lambda *_: None)
    entries = flaky()
    if arguments[:1] != ["--flaky"]:
        return verdict(arguments, entries, datetime.date.today())
    statuses = [_run([entry.test])[0] for entry in entries for _ in range(int(arguments[1]))]
    print(f"{len(entries)} flaky tests, {len(statuses)} runs, {sum(map(bool, statuses))} failed")
    return int(any(statuses))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
