"""Several sinks, or several sweepers, in one process on one Spark session, to be killed together: starts are slow.

`python -m tests.support.shared_services FILE`: the file holds kind and settings, pickled. Each service is otherwise
what `waitreg sink` and `waitreg sweeper` run, with a telemetry port of its own; when one ends, all do.
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
from wait_registry.local.ports import free_ports
from wait_registry.settings.root import Settings

Kind = Literal["sink", "sweeper"]


def start_shared(kind: Kind, settings: Sequence[Settings], directory: Path) -> list[Service]:
    """Start services of one kind in one process and return them; killing one kills all.

    Args:
        kind: of the services.
        settings: one for each; Spark takes the first one's.
        directory: for log and settings.
    """
    ports = free_ports(len(settings))
    own = [
        one.model_copy(update={"telemetry": one.telemetry.model_copy(update={"port": port})})
        for one, port in zip(settings, ports, strict=True)
    ]
    number = len(list(directory.glob(f"{kind}-*.log")))
    log = directory / f"{kind}-{number}.log"
    process = start_module("tests.support.shared_services", (kind, own), log)
    return [Service(kind, process, log, port) for port in ports]


def start_module(
    module: str, given: object, log: Path, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start `python -m MODULE FILE`, where the file holds what is given, pickled, in the folder of its log."""
    file = log.with_suffix(".settings")
    file.write_bytes(pickle.dumps(given))
    with log.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-m", module, str(file)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})},
            cwd=log.parent,
        )


def main(file: str) -> None:
    """Run the services until the process is killed, or one of them ends."""
    from wait_registry.spark.session import spark_session

    logging.basicConfig(level=logging.INFO)
    kind, settings = pickle.loads(Path(file).read_bytes())
    spark = spark_session(settings[0], f"shared-{kind}")
    for one in settings:
        threading.Thread(target=_run, args=(kind, one, spark), daemon=True).start()
    threading.Event().wait()


def _run(kind: str, settings: Settings, spark: Any) -> None:
    try:
        if kind == "sink":
            from sink.service import SinkService

            SinkService(settings, spark).run()
        else:
            from sweeper.service import SweeperService
            from wait_registry.cli.connect.sweeping import tables_policy

            SweeperService(settings, spark, tables=tables_policy(settings)).run()
    except BaseException:
        logging.exception("%s %s", kind, settings.wait.topic)
    os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1])
