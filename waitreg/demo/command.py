"""`waitreg demo`: from an empty machine to the reconciliation."""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from wait_registry.errors import ReconciliationError
from wait_registry.kafka.topics import create_topics
from wait_registry.service.process import stop_requests
from waitreg.command import Command, Invocation
from waitreg.demo.comparison import compare, show_measurements
from waitreg.demo.crash import crash
from waitreg.demo.plan import STRATEGIES, DemoPlan
from waitreg.demo.platform import INPUT_PARTITIONS, Platform, running_platform
from waitreg.demo.run import Run, comparison_run, crash_run
from waitreg.local.background import Background
from waitreg.reconcile.screen import Screen
from waitreg.reconcile.verdict import show_reconciliations


@click.command(
    "demo",
    cls=Command,
    examples=("waitreg demo", "waitreg demo --keep"),
)
@click.option("--keep", is_flag=True, help="Let everything continue after the result, until Ctrl-C.")
@click.pass_obj
def command(_: Invocation, keep: bool) -> int:
    """Compare throughput, kill a processor, and reconcile every record.

    Starts a Kafka broker, Postgres and the three services as processes on this machine. It calls the same service from
    a consumer that commits batches and from processors in the modes eager and deferred. It prints their rates with
    their limits, and which share of the records each registered. Then it kills a processor while handlers run. You see
    its records in Postgres, see them expire, and see each arrive once in the dead letter topic. It ends with the
    reconciliation of every published record. Its console shows the same in a browser: open the address that it prints.
    Takes three to five minutes; Ctrl-C stops everything.
    """
    return run_demo(keep=keep)


def run_demo(plan: DemoPlan | None = None, screen: Screen | None = None, *, keep: bool = False) -> int:
    """Run the demo and return 0.

    Args:
        plan: its sizes; those of three to five minutes when None.
        screen: where it is shown; standard output when None.
        keep: whether everything continues after the result until Ctrl-C.

    Raises:
        ReconciliationError: a guarantee was broken (exit code 4); logs are kept and their folder is printed.
        WaitRegistryError: a part could not be started or stopped working; the message has the end of its log.
    """
    plan, screen = plan or DemoPlan(), screen or Screen()
    with _working_directory(screen) as directory:
        screen.step("Starting a Kafka broker and a Postgres as child processes")
        logging.basicConfig(filename=directory / "demo.log")  # the client libraries' logs, off the screen
        with running_platform(directory, plan) as platform:
            screen.note(f"Kafka {platform.stack.bootstrap_servers}, Postgres {platform.stack.postgres_url}")
            comparisons = [
                comparison_run(platform, strategy, max_in_flight)
                for max_in_flight in plan.in_flight
                for strategy in STRATEGIES
            ]
            crashed = crash_run(platform, "crash", plan.crash_records, plan.crash_in_flight)
            console = _start(screen, platform, [*comparisons, crashed])
            kept = _play(screen, plan, comparisons, crashed)
            if keep:
                _keep(screen, console)
        if not kept:
            raise ReconciliationError("a guarantee was broken; see the table above")
    return 0


@contextmanager
def _working_directory(screen: Screen) -> Iterator[Path]:
    """Create a folder for logs, manifests and call logs; delete it unless something failed."""
    directory, failed = Path(tempfile.mkdtemp(prefix="waitreg-demo-")), False
    try:
        yield directory
    except Exception:
        failed = True
        screen.note(f"logs, manifests and call logs are kept in {directory}")
        raise
    finally:
        if not failed:
            shutil.rmtree(directory, ignore_errors=True)


def _start(screen: Screen, platform: Platform, runs: Sequence[Run]) -> Background:
    """Start what all runs share, and return the console."""
    for run in runs:
        create_topics(run.settings, INPUT_PARTITIONS)
    screen.step("Starting the sink and the sweeper (two Spark sessions), and the console")
    console = platform.console()
    services = [platform.service(command, platform.settings) for command in ("sink", "sweeper")]
    for part in (console, *services, *(run.downstream for run in runs)):
        part.wait_ready()
    screen.note(f"the console, until the demo ends: {console.address}")
    return console


def _keep(screen: Screen, console: Background) -> None:
    """Let everything continue until Ctrl-C."""
    screen.step(f"Everything continues; the console is at {console.address}. Ctrl-C ends it")
    with stop_requests() as stop:
        stop.wait()


def _play(screen: Screen, plan: DemoPlan, comparisons: Sequence[Run], crashed: Run) -> bool:
    measurements = []
    for max_in_flight in plan.in_flight:
        runs = [run for run in comparisons if run.settings.processor.most_in_flight == max_in_flight]
        screen.step(
            f"Batch consumer and wait-registry (eager and deferred) at N={max_in_flight}; one call in ten takes 1 s, "
            "the others 200 ms"
        )
        measurements += compare(screen, runs)
    show_measurements(screen, measurements)
    screen.step(f"Starting a processor with N={plan.crash_in_flight} that will be killed during its work")
    crashed.publish()
    crash(screen, crashed)
    screen.step("Reconciliation")
    return show_reconciliations(screen, {run.name: run.reconcile() for run in (*comparisons, crashed)})
