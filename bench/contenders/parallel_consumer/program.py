"""The compiled Java program: made by javac when its source or its jars have changed, kept in `.waitreg/bench/`."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from wait_registry.errors import ConfigurationError
from wait_registry.jvm import JarKind, committed_sums, jar_directory, java_command

ROOT: Final = Path(__file__).parents[3]
SOURCES: Final = Path(__file__).with_name("java")
BUILT: Final = ROOT / ".waitreg" / "bench"
JARS: Final[JarKind] = "parallel-consumer"
JAVA_RELEASE: Final = "17"


def class_path() -> str:
    """Return the class path of the program; compiles it where that isn't done yet.

    Raises:
        ConfigurationError: no JDK, a jar that is missing or changed, or source that doesn't compile.
    """
    jars = f"{jar_directory(JARS)}/*"
    sources = sorted(SOURCES.glob("*.java"))
    # Named after what it is made of: nothing old is ever run, and two that build at once don't disturb each other.
    classes = BUILT / f"parallel_consumer-{fingerprint(sources, committed_sums(JARS))}"
    if not classes.is_dir():
        _compile(sources, jars, classes)
    return f"{classes}{os.pathsep}{jars}"


def fingerprint(sources: Iterable[Path], sums: Mapping[str, str]) -> str:
    """Return what changes with any byte of the sources or of the jars, in 16 hexadecimal digits."""
    digest = hashlib.sha256()
    for source in sources:
        digest.update(f"{source.name}\n{hashlib.sha256(source.read_bytes()).hexdigest()}\n".encode())
    for name, committed in sorted(sums.items()):
        digest.update(f"{name}\n{committed}\n".encode())
    return digest.hexdigest()[:16]


def javac_command() -> str:
    """Return the `javac` that belongs to the `java` we run.

    Raises:
        ConfigurationError: there is none, or no Java 17.
    """
    java = Path(java_command()).resolve()
    javac = java.with_name("javac")
    if not javac.is_file():
        raise ConfigurationError(f"{java} has no javac beside it: install a whole JDK, or set JAVA_HOME to one")
    return str(javac)


def _compile(sources: Iterable[Path], jars: str, classes: Path) -> None:
    BUILT.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{classes.name}-", dir=BUILT))
    try:
        done = subprocess.run(
            [
                # Not of paths: a jar's manifest may name another release of a jar than the one that is there.
                *(javac_command(), "--release", JAVA_RELEASE, "-Xlint:all,-path", "-Werror", "-proc:none"),
                *("-cp", jars, "-d", str(scratch)),
                *map(str, sources),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise ConfigurationError(f"javac refuses {SOURCES}:\n{done.stderr}{done.stdout}")
        # Somebody else may have been faster; theirs is the same.
        with contextlib.suppress(OSError):
            scratch.rename(classes)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
