"""A sweeper process whose sweeps run in itself instead of in Spark's workers: it starts in a second.

`python -m tests.faults.sweeper_without_spark FILE`: the file holds its settings, pickled. The schedule, the look for
what is due and the export are the product's; it sweeps until it is ended, or until a sweep raises.
"""

from __future__ import annotations

import logging
import os
import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from sweeper.instruments import Instruments
from sweeper.partition import sweep_partition
from sweeper.result import PartitionResult
from sweeper.schedule import Schedule
from sweeper.sweeper import Sweeper
from sweeper.wait_topic import WaitTopic
from tests.support.processes import Service
from wait_registry.settings.root import Settings
from wait_registry.telemetry.exposition import MetricsRegistry


def start_sweeper_without_spark(
    settings: Settings, directory: Path, environment: Mapping[str, str] | None = None
) -> Service:
    """Start one; it has no telemetry port, and its log is in the directory.

    Args:
        settings: of the sweeper.
        directory: for log and settings, made if need be.
        environment: further variables.
    """
    directory.mkdir(exist_ok=True)
    log, given = directory / "sweeper.log", directory / "sweeper.settings"
    given.write_bytes(pickle.dumps(settings))
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.sweeper_without_spark", str(given)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})},
            cwd=directory,
        )
    return Service("sweeper", process, log, 0)


def sweep_in_process(settings: Settings, topic: WaitTopic, partitions: Sequence[int]) -> list[PartitionResult]:
    """Do the Spark job's work, one partition after another."""
    return [sweep_partition(settings, topic, partition) for partition in partitions]


def main(file: str) -> None:
    """Sweep until the process is ended."""
    logging.basicConfig(level=logging.INFO)
    settings: Settings = pickle.loads(Path(file).read_bytes())
    sweeper = Sweeper(settings, sweep_in_process, Instruments(MetricsRegistry()), f"sweeper {os.getpid()}")

    def sweep() -> None:
        sweeper.run_once()

    Schedule(sweep, settings.sweeper.interval_s).run(0)


if __name__ == "__main__":
    main(sys.argv[1])
