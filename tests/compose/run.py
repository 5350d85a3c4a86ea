"""`make compose-test`: docker-compose.yml for real, from the build to the end. Needs a Docker engine with compose v2.

Python's own library is enough. Without an engine nothing is tested, which is said, and is a failure with CI=true.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from types import FrameType

from project import ROOT, Failed, Project
from story import STEPS

LIMIT_S = 3600
LOG = ROOT / ".waitreg" / "compose-test.log"
STARTED = time.monotonic()


def say(line: str) -> None:
    """Print a line with the time since the start."""
    print(f"{time.monotonic() - STARTED:6.0f} s  {line}", flush=True)


def engine_problem() -> str | None:
    """Return why nothing can be tested here; None when an engine with compose answers."""
    if shutil.which("docker") is None:
        return "there is no docker command"
    for command in (["docker", "version"], ["docker", "compose", "version"]):
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            return f"`{' '.join(command)}` failed: {(done.stderr or done.stdout).strip()}"
    return None


def main(wanted: list[str]) -> int:
    """Run the steps, all or those named; return 0 when each showed what it says."""
    if problem := engine_problem():
        print(f"NOT TESTED: docker-compose.yml was not run: {problem}", file=sys.stderr)
        return 1 if os.environ.get("CI") == "true" else 0
    for number in (signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, _interrupt)
    signal.alarm(LIMIT_S)
    project = Project(
        f"waitreg-test-{os.getpid()}", {"APP_DIR": f"{ROOT}/tests/compose/app", "DEMO_RECORDS": "600"}, say
    )
    steps = [step for step in STEPS if not wanted or step.__name__ in wanted]
    passed = False
    try:
        for step in steps:
            say(f"== {step.__name__}: {step.__doc__}")
            step(project, say)
        passed = True
    except Failed as failure:
        say(f"FAILED: {failure}")
    finally:
        signal.alarm(0)
        if not passed:
            _keep_logs(project)
        say("== down, with volumes")
        project.remove()
    say(f"passed: {', '.join(step.__name__ for step in steps)}" if passed else "FAILED")
    return 0 if passed else 1


def _keep_logs(project: Project) -> None:
    # Whatever went wrong, unexpected failures too: the containers are gone a moment later.
    LOG.parent.mkdir(exist_ok=True)
    LOG.write_text(project.logs(), "utf-8")
    say(f"the containers' logs: {LOG}")


def _interrupt(number: int, _frame: FrameType | None) -> None:
    raise Failed(f"ended by {signal.Signals(number).name} after {time.monotonic() - STARTED:.0f} s")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
