"""kill -9 of each service under load, five times each, with the reconciliation after every kill.

`python -m tests.acceptance.kill9 [SERVICE ...] [--kills 5] [--seed 1]` prints a table per service and ends with 0, or
with 4 when a guarantee was broken. Every kill has its own topic, group and downstream. A processor is killed each time,
so that records expire; for sink and sweeper the service is killed as well, the sweeper in mid-export.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.acceptance.expiry import expiring, watched_exports
from tests.support.waiting import wait_until
from wait_registry.demo.evidence import sink_lag
from wait_registry.demo.plan import DemoPlan
from wait_registry.demo.platform import Platform, running_platform
from wait_registry.demo.reconciliation import Reconciliation
from wait_registry.demo.run import Run, crash_run
from wait_registry.demo.screen import Screen
from wait_registry.demo.verdict import show_reconciliations
from wait_registry.errors import ReconciliationError
from wait_registry.local.background import Background
from wait_registry.settings.sweeper import SweeperSettings

SERVICES = ("processor", "sink", "sweeper")
RECORDS = 1500
N = 50
POLL_S = 0.02
# More records than the sweeper exports until it is killed: two tasks, a chunk of two each.
ENOUGH = 10
DEADLINE_S = 120.0
PLAN = DemoPlan()


@dataclass(slots=True)
class Theatre:
    """The running system; sink and sweeper are replaced when they have been killed."""

    platform: Platform
    chance: random.Random
    sink: Background
    sweeper: Background

    def run(self, name: str) -> Run:
        """Describe a run with its topic filled and its downstream listening."""
        run = crash_run(self.platform, name, RECORDS, N)
        self.platform.create_topics_of(run.settings)
        run.publish()
        run.downstream.wait_ready()
        return run


@contextmanager
def theatre(seed: int) -> Iterator[Theatre]:
    """Start everything once for all kills."""
    with working_directory() as directory, running_platform(directory, PLAN) as platform:
        # Small chunks: an export takes long enough to be killed in its middle.
        platform.settings = platform.settings.model_copy(
            update={"sweeper": SweeperSettings(interval_s=PLAN.sweep_interval_s, chunk_rows=2)}
        )
        sink, sweeper = platform.start("sink"), platform.start("sweeper")
        sink.wait_ready()
        sweeper.wait_ready()
        yield Theatre(platform, random.Random(seed), sink, sweeper)


@contextmanager
def working_directory() -> Iterator[Path]:
    """Create a folder for logs, manifests and call logs; an error names it and keeps it."""
    directory = Path(tempfile.mkdtemp(prefix="waitreg-kill9-"))
    try:
        yield directory
    except Exception as error:
        error.add_note(f"logs, manifests and call logs are kept in {directory}")
        raise
    # A killed service's JVM may still write there when we leave.
    shutil.rmtree(directory, ignore_errors=True)


def kill_once(stage: Theatre, service: str, number: int) -> Reconciliation:
    """Kill a service in the middle of a run and return where every record of the run ended."""
    run = stage.run(f"{service}-{number}")
    other = KILLS[service](stage, run, number)
    third = run.start_processor(f"processor-{run.name}-c")
    wait_for(lambda: has_ended(stage, run), f"every record of {run.topic} has its end")
    result = run.reconcile()
    for background in (other, third, run.downstream):
        background.stop()
    return result


def kill_processor(stage: Theatre, run: Run, _number: int = 0) -> Background:
    """Kill one of two processors at any moment, also in the middle of a rebalance; return the other one."""
    victim = run.start_processor(f"processor-{run.name}-a")
    wait_for(lambda: run.completed() > 0, "the processor that will be killed has partitions")
    other = run.start_processor(f"processor-{run.name}-b")
    wait_for_moment(stage, run)
    run.kill(victim)
    return other


def kill_until_records_expire(stage: Theatre, run: Run) -> None:
    """Kill the only processor, and each successor at once, until enough of their records will expire."""
    victim = run.start_processor(f"processor-{run.name}-a")
    wait_for_moment(stage, run)
    run.kill(victim)
    while len(expiring(run)) < ENOUGH:
        completed = run.completed()
        victim = run.start_processor(f"processor-{run.name}-a{len(run.kills_ms)}")
        wait_for(partial(_has_progressed, run, completed), "the successor of a killed processor has partitions")
        run.kill(victim)


def _has_progressed(run: Run, completed: int) -> bool:
    return run.completed() >= completed + N


def wait_for_moment(stage: Theatre, run: Run) -> None:
    """Wait for a random moment in the first half of a run."""
    moment = stage.chance.randrange(50, RECORDS // 2)
    wait_for(lambda: run.completed() >= moment, "the run is in full swing")


def kill(background: Background, *, only_itself: bool) -> None:
    """Send SIGKILL to a process, or to it and all its children at once."""
    if only_itself:
        os.kill(background.pid, signal.SIGKILL)
    background.kill()


def kill_sink(stage: Theatre, run: Run, number: int) -> Background:
    """Kill the sink while it takes the load in, its JVM with it or not, and start another one."""
    other = kill_processor(stage, run)
    kill(stage.sink, only_itself=bool(number % 2))
    stage.sink = stage.platform.start("sink")
    return other


def kill_sweeper(stage: Theatre, run: Run, number: int) -> Background:
    """Kill the sweeper once the first dead letter of an export is in the log, committed or not."""
    with watched_exports(run) as an_export_has_begun:
        kill_until_records_expire(stage, run)
        other = run.start_processor(f"processor-{run.name}-b")
        wait_for(an_export_has_begun, f"an export of {run.topic} has begun")
    kill(stage.sweeper, only_itself=bool(number % 2))
    stage.sweeper = stage.platform.start("sweeper")
    return other


# Each kills a processor, too, and returns one that runs.
KILLS: dict[str, Callable[[Theatre, Run, int], Background]] = {
    "processor": kill_processor,
    "sink": kill_sink,
    "sweeper": kill_sweeper,
}


def has_ended(stage: Theatre, run: Run) -> bool:
    """Return whether every record has its end and the tables show it."""
    if run.completed() < RECORDS // 2 or sink_lag(run.settings) > 0:
        return False
    registered = stage.platform.query(
        "select 1 from wait where consumer_group = %s limit 1", run.settings.processor.group
    )
    if registered:
        return False
    result = run.reconcile()
    return result.finished and not result.lost


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition, polling often so that a kill hits running work; AssertionError when it takes too long."""
    wait_until(condition, DEADLINE_S, what, POLL_S)


def kill_services(screen: Screen, services: Sequence[str], kills: int, seed: int) -> bool:
    """Kill each service ``kills`` times; return whether every reconciliation was kept."""
    kept = True
    with theatre(seed) as stage:
        for service in services:
            results: dict[str, Reconciliation] = {}
            for number in range(1, kills + 1):
                screen.step(f"kill -9 of {service}, {number} of {kills}")
                results[f"kill {number}"] = kill_once(stage, service, number)
            kept &= show_reconciliations(screen, results)
    return kept


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, kill, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("services", nargs="*", metavar="SERVICE", help=f"of {', '.join(SERVICES)}; all by default")
    parser.add_argument("--kills", type=int, default=5, help="of each service (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the kills (default %(default)s)")
    given = parser.parse_args(arguments)
    unknown = set(given.services) - set(SERVICES)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known are {', '.join(SERVICES)}")
    logging.getLogger().addHandler(logging.NullHandler())  # the client libraries' notes would tear the tables apart
    kept = kill_services(Screen(), given.services or SERVICES, given.kills, given.seed)
    return 0 if kept else ReconciliationError.exit_code


if __name__ == "__main__":
    sys.exit(main())
