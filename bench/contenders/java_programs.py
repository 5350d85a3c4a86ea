"""The benchmark's Java programs, in the folder `java`: how they are compiled and started, and what they need.

`python -m bench.contenders.java_programs` fetches the jars, as bench/jars lists them with their SHA-256 sums.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from bench.harness.row import ROOT, Bench
from wait_registry.errors import ConfigurationError
from wait_registry.java.fetching import fetch_jars
from wait_registry.java.jars import committed_sums, java_command, verify_jars

SOURCES: Final = Path(__file__).with_name("java")
LISTS: Final = ROOT / "bench" / "jars"
HOME: Final = ROOT / ".waitreg" / "bench" / "jars"
JARS: Final = "parallel-consumer"
LOGS: Final = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true")


def java_program(bench: Bench, name: str, *arguments: str) -> list[str]:
    """Compile the programs for a turn, and return the command of one: a heap of 1 GB at most, logs at WARN."""
    jars = f"{jars_directory()}/*"
    options = ["-Xmx1g", "-XX:+ExitOnOutOfMemoryError", *LOGS, "-cp", f"{_compiled(bench, jars)}:{jars}"]
    return [java_command(), *options, f"io.waitreg.bench.{name}", *arguments]


def jars_directory() -> Path:
    """Return the folder of the jars; raises ConfigurationError unless they are as bench/jars lists them."""
    try:
        verify_jars(HOME / JARS, committed_sums(JARS, LISTS))
    except ConfigurationError as problem:
        raise ConfigurationError(f"run `make bench-peers`: {problem}") from None
    return HOME / JARS


def _compiled(bench: Bench, jars: str) -> Path:
    classes = bench.directory / "classes"
    if classes.is_dir():
        return classes
    javac = Path(java_command()).resolve().with_name("javac")
    if not javac.is_file():
        raise ConfigurationError(f"{javac} is missing: install a whole JDK, or set JAVA_HOME to one")
    # -path: a jar's manifest may name another release of a jar than the one that is there. -classfile: so may a class
    # name an annotation that isn't there.
    options = [
        "--release",
        "17",
        "-Xlint:all,-path,-classfile",
        "-Werror",
        "-proc:none",
        "-cp",
        jars,
        "-d",
        str(classes),
    ]
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
