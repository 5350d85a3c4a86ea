"""Make the archive of classes with which Spark's JVMs start in half the time.

    python -m tests.support.class_archive FILE

A JVM maps the archive into its memory instead of reading, checking and linking ten thousand classes once more. One that
doesn't fit (another Java, another place of the jars) is ignored. See "Class Data Sharing" in Java's manual.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from tests.support.quick_jvm import COMPILER_AND_COLLECTOR
from wait_registry.settings.tree import Settings
from wait_registry.spark.session import spark_session, stop_session

DEADLINE_S = 120.0


def main() -> int:
    """Run what sink and sweeper use of Spark and have the JVM write at its end which classes that took."""
    target = Path(sys.argv[1]).absolute()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        made = Path(scratch, target.name)
        os.environ["SPARK_SUBMIT_OPTS"] = f"{COMPILER_AND_COLLECTOR} -XX:ArchiveClassesAtExit={made} -Xlog:cds=off"
        _use_spark()
        made.replace(target)
    return 0


def _use_spark() -> None:
    """Run a batch read that comes as Arrow, and a job with Python workers."""
    session = spark_session(Settings(), "class archive")
    session.range(10).selectExpr("cast(string(id) as binary) as key", "array(struct(id)) as headers").toArrow()
    session.sparkContext.parallelize(range(2), 2).mapPartitions(list).collect()
    jvm = session.sparkContext._gateway.proc
    stop_session(session)
    jvm.stdin.close()  # which it ends with, and writes the archive
    jvm.wait(DEADLINE_S)


if __name__ == "__main__":
    raise SystemExit(main())
