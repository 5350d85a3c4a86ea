"""Run the release tests of this commit in parts, each at most an hour, and keep their results in .waitreg/release.json.

python -m tests.release             the parts that haven't passed for HEAD, one after another
python -m tests.release PART ...    these parts, also if they have passed
python -m tests.release --list      the parts, their commands and results
python -m tests.release --check     status 1 unless every part has passed for HEAD
"""

from __future__ import annotations

import datetime
import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any, TypeAlias

from tests.support.programs import signals_interrupt

ROOT = Path(__file__).parents[1]
FILE = ROOT / "tests" / "release.toml"
RESULTS = ROOT / ".waitreg" / "release.json"
LIMIT_S = 3600.0
# How long a part may take to end its processes.
END_S = 60.0
MAKE = {"MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS", "MAKELEVEL"}

Results: TypeAlias = dict[str, dict[str, Any]]


def test_paths() -> dict[str, list[str]]:
    """Return the folders and files whose tests of the release tier a part runs, by its name."""
    found: dict[str, list[str]] = tomllib.loads(FILE.read_text("utf-8"))["tests"]
    return found


def parts() -> dict[str, str]:
    """Return the command of each part, by name."""
    tests = {part: f"make tier-tests TIER=release TESTS='{' '.join(paths)}'" for part, paths in test_paths().items()}
    return tests | tomllib.loads(FILE.read_text("utf-8"))["part"]


def results(commit: str) -> Results:
    """Return the results of a commit's parts; empty if none ran."""
    return _kept().get(commit, {})


def _kept() -> dict[str, Results]:
    kept: dict[str, Results] = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    return kept


def missing(commit: str) -> list[str]:
    """Return the parts that haven't passed for a commit."""
    passed = {part for part, result in results(commit).items() if result["status"] == 0}
    return [part for part in parts() if part not in passed]


def run(part: str, commit: str) -> bool:
    """Run one part and keep its result; return whether it passed.

    A part that leaves other files than HEAD's has no result: the parts after it would test something else.
    """
    print(f"\n== {part}: {parts()[part]}", flush=True)
    began = time.monotonic()
    status = _status(parts()[part])
    seconds = round(time.monotonic() - began)
    print(f"== {part}: status {status} after {seconds} s", flush=True)
    if changed := changes(commit):
        print(f"{part}: no result, since these files aren't those of {commit[:8]} any more:\n{changed}", flush=True)
        return False
    at = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    kept = _kept()
    kept.setdefault(commit, {})[part] = {"status": status, "seconds": seconds, "at": at}
    RESULTS.parent.mkdir(exist_ok=True)
    written = RESULTS.with_suffix(".new")
    written.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    written.replace(RESULTS)
    return status == 0


def _status(command: str) -> int:
    """Return the exit status of a part's command; -1 if it took too long and was ended."""
    # What is missing fails, and options of the make that called this don't reach the parts.
    environment = {name: value for name, value in os.environ.items() if name not in MAKE} | {"CI": "true"}
    with subprocess.Popen(["sh", "-c", command], cwd=ROOT, start_new_session=True, env=environment) as process:
        try:
            return process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            print(f"stopped, since a part may take {LIMIT_S / 60:.0f} minutes", flush=True)
            _end(process)
            return -1
        except KeyboardInterrupt:
            _end(process)
            raise


def _end(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)


def changes(commit: str) -> str:
    """Return what differs from a commit in the checkout, files that git ignores apart; empty if nothing does."""
    head = _git("rev-parse", "HEAD")
    return (f"HEAD is {head[:8]}\n" if head != commit else "") + _git("status", "--porcelain")


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def main(arguments: list[str]) -> int:
    signals_interrupt()
    commit = _git("rev-parse", "HEAD")
    if arguments == ["--list"]:
        for part, command in parts().items():
            print(f"{part:12} {results(commit).get(part, 'not run')}\n{'':12} {command}")
        return 0
    if arguments != ["--check"]:
        if changed := changes(commit):
            print(f"results are kept per commit, and these files aren't committed:\n{changed}", file=sys.stderr)
            return 2
        if unknown := set(arguments) - parts().keys():
            print(f"no such part: {', '.join(sorted(unknown))}; the parts are {', '.join(parts())}", file=sys.stderr)
            return 2
        for part in arguments or missing(commit):
            run(part, commit)
    left = missing(commit)
    print(f"{commit[:8]}: {len(parts()) - len(left)} of {len(parts())} parts passed")
    if left:
        print("not passed:", *left)
    asked = set(arguments) - {"--check"} or set(left)
    return int(not asked.isdisjoint(left))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
