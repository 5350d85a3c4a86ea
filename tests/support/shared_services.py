"""Several sinks, or several sweepers, in one process on one Spark session, to be killed together: starts are slow.

`python -m tests.support.shared_services FILE`: the file holds kind and settings, pickled. Each service is otherwise
what `waitreg sink` and `waitreg sweeper` run, with a telemetry port of its own; when one ends, all do. The kind
"sweeping" is sweepers without Spark and telemetry, which start within a second.
"""

from __future__ import annotations

import logging
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from tests.support.processes import Service
from tests.support.settings import changed
from wait_registry.settings.tree import Settings
from waitreg.local.ports import free_ports

Kind = Literal["sink", "sweeper", "sweeping"]


def start_shared(
    kind: Kind, settings: Sequence[Settings], directory: Path, environment: Mapping[str, str] | None = None
) -> list[Service]:
    """Start services of one kind in one process and return them; killing one kills all.

    Args:
        kind: of the services.
        settings: one for each; Spark takes the first one's.
        directory: for log and settings.
        environment: further variables.
    """
    ports = free_ports(len(settings))
    own = [changed(one, "telemetry", port=port) for one, port in zip(settings, ports, strict=True)]
    number = len(list(directory.glob(f"{kind}-*.log")))
    log = directory / f"{kind}-{number}.log"
    file = log.with_suffix(".settings")
    file.write_bytes(pickle.dumps((kind, own)))
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.shared_services", str(file)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})},
            cwd=directory,
        )
    return [Service(kind, process, log, port) for port in ports]


def main(file: str) -> None:
    """Run the services until the process is killed, or one of them ends."""
    logging.basicConfig(level=logging.INFO)
    kind, settings = pickle.loads(Path(file).read_bytes())
    spark = _spark_session(settings[0], kind)
    for one in settings:
        threading.Thread(target=_run, args=(kind, one, spark), daemon=True).start()
    threading.Event().wait()


def _spark_session(settings: Settings, kind: str) -> Any:
    if kind == "sweeping":
        return None
    from wait_registry.spark.session import spark_session

    return spark_session(settings, f"shared-{kind}")


def _run(kind: str, settings: Settings, spark: Any) -> None:
    try:
        if kind == "sink":
            from sink.service import SinkService

            SinkService(settings, spark).run()
        elif kind == "sweeper":
            from sweeper.connect_policy import tables_policy
            from sweeper.service import SweeperService

            SweeperService(settings, spark, tables=tables_policy(settings)).run()
        else:
            from sweeper.periods import Schedule
            from tests.integration.sweeper.scenario import sweeper_of

            sweeper = sweeper_of(settings, instance=f"sweeper {os.getpid()}")

            def sweep() -> None:
                sweeper.run_once()

            Schedule(sweep, settings.sweeper.interval_s).run(0)
    except BaseException:
        logging.exception("%s %s", kind, settings.wait.topic)
    os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1])
