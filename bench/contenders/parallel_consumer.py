"""Confluent's Parallel Consumer as a flow contender: a small Java program on its core module, and how it is started.

Its core module is measured, as its documentation introduces it: `poll(context -> ...)` with a thread for each call, so
that 2,000 calls in flight are 2,000 threads. For calls that don't block, its vertx and reactor modules would cost less
memory at a large N; they aren't built here.

`maxConcurrency` is N; all other options are its defaults: `PERIODIC_CONSUMER_ASYNCHRONOUS` commits every 5 s, which is
its fastest mode and the one it suggests to start with, and `batchSize` is 1. Its buffer grows by itself, from 2 N by N
every 2 s at most: it works for 10 s before it is measured. The consumer has `enable.auto.commit=false`, which it
demands, and `auto.offset.reset=earliest`; kafka-clients 3.7.0 is the version that it is built with. The heap is 1 GB at
most, the JVM's other flags are its defaults, logs are at WARN.

`python -m bench.contenders.parallel_consumer` fetches the jars, as bench/jars lists them with their SHA-256 sums.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Final

from bench.contenders.flow_program import FlowArguments
from bench.harness.row import ROOT, Bench
from wait_registry.errors import ConfigurationError
from wait_registry.java.fetching import fetch_jars
from wait_registry.java.jars import committed_sums, java_command, verify_jars

SOURCES: Final = Path(__file__).with_name("java")
LISTS: Final = ROOT / "bench" / "jars"
HOME: Final = ROOT / ".waitreg" / "bench" / "jars"
JARS: Final = "parallel-consumer"


def command(bench: Bench, order: str, arguments: FlowArguments) -> list[str]:
    """Compile the program and return it for an order, `unordered` or `key` (one call at a time per key)."""
    jars = f"{jars_directory()}/*"
    logs = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true")
    java = [java_command(), "-Xmx1g", "-XX:+ExitOnOutOfMemoryError", *logs, "-cp", f"{_compiled(bench, jars)}:{jars}"]
    given = {**asdict(arguments), "order": order}
    return [*java, "io.waitreg.bench.ParallelConsumerFlow", *(str(part) for item in given.items() for part in item)]


def jars_directory() -> Path:
    """Return the folder of the jars; raises ConfigurationError unless they are as bench/jars lists them."""
    try:
        verify_jars(HOME / JARS, committed_sums(JARS, LISTS))
    except ConfigurationError as problem:
        raise ConfigurationError(f"run `make bench-peers`: {problem}") from None
    return HOME / JARS


def _compiled(bench: Bench, jars: str) -> Path:
    javac, classes = Path(java_command()).resolve().with_name("javac"), bench.directory / "classes"
    if not javac.is_file():
        raise ConfigurationError(f"{javac} is missing: install a whole JDK, or set JAVA_HOME to one")
    # -path: a jar's manifest may name another release of a jar than the one that is there.
    options = ["--release", "17", "-Xlint:all,-path", "-Werror", "-proc:none", "-cp", jars, "-d", str(classes)]
    done = subprocess.run([javac, *options, *SOURCES.glob("*.java")], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ConfigurationError(f"javac refuses {SOURCES}:\n{done.stderr}{done.stdout}")
    return classes


if __name__ == "__main__":
    try:
        fetch_jars(HOME, (JARS,), LISTS)
    except ConfigurationError as problem:
        print(f"bench: {problem}", file=sys.stderr)
        sys.exit(problem.exit_code)
