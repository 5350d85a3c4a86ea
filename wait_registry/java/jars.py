"""The jars and the Java that runs them: their folders, and the check of their committed sums."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Literal, TypeAlias

from wait_registry.errors import ConfigurationError

JarKind: TypeAlias = Literal["spark", "broker", "connect", "debezium-jdbc", "debezium-postgres"]

# What every installation needs, and what only a Kafka Connect worker of our own does.
JAR_KINDS: tuple[JarKind, ...] = ("spark", "broker")
CONNECT_JAR_KINDS: tuple[JarKind, ...] = ("connect", "debezium-jdbc", "debezium-postgres")
OLDEST_JAVA = 17
FIX_JARS = "run `waitreg jars fetch`; for Kafka Connect, `waitreg jars fetch connect debezium-jdbc debezium-postgres`"


def jar_directory(kind: JarKind, configured: str = "") -> Path:
    """Return the folder with the verified jars of one JVM.

    Args:
        kind: ``spark`` for the Kafka source of the Spark session, ``broker`` for the embedded broker, ``connect`` for a
            Kafka Connect worker, ``debezium-...`` for its plugins.
        configured: a folder that the user set (`spark.jars_dir`); ours by default.

    Raises:
        ConfigurationError: a jar is missing, changed or too many; the message names it and the command that fixes it.
    """
    directory = Path(configured).expanduser() if configured else jars_home() / kind
    verify_jars(directory, committed_sums(kind))
    return directory


def jars_home() -> Path:
    """Return the folder with one folder per kind: in the checkout, or in the user's cache if installed."""
    package = Path(str(resources.files("wait_registry_jvm")))
    if (package.parent / "pyproject.toml").is_file():
        return package / "jars"
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "wait-registry" / "jars"


def jar_lists() -> Traversable:
    """Return the folder `jvm/`: the list of jars for Ivy, and the SHA-256 sums of each kind."""
    return resources.files("wait_registry_jvm")


def committed_sums(kind: str, lists: Traversable | None = None) -> dict[str, str]:
    """Return file name -> SHA-256 in hex, as committed in <kind>.sha256 of a folder (`jar_lists` by default)."""
    text = (lists or jar_lists()).joinpath(f"{kind}.sha256").read_text("ascii")
    return {name: digest for digest, name in (line.split(maxsplit=1) for line in text.splitlines() if line)}


def verify_jars(directory: Path, expected: Mapping[str, str]) -> None:
    """Check that a folder holds the expected jars, no other, and no changed byte.

    Args:
        directory: folder of the jars.
        expected: file name -> SHA-256 in hex.

    Raises:
        ConfigurationError: a file is missing, unexpected or changed; fetch the jars again.
    """
    present = {path.name for path in directory.glob("*.jar")}
    for name in sorted(expected.keys() - present):
        raise ConfigurationError(f"the jar {directory / name} is missing ({len(present)} others are there): {FIX_JARS}")
    for name in sorted(present - expected.keys()):
        raise ConfigurationError(
            f"{directory / name} is not among the {len(expected)} jars expected there: remove it, or {FIX_JARS}"
        )
    for name, digest in expected.items():
        with (directory / name).open("rb") as file:
            seen = hashlib.file_digest(file, "sha256").hexdigest()
        if seen != digest:
            raise ConfigurationError(
                f"the jar {directory / name} was changed: its SHA-256 is {seen}, expected {digest}; {FIX_JARS}"
            )


def java_command() -> str:
    """Return the `java` to run: of JAVA_HOME if set, else the first on PATH.

    Raises:
        ConfigurationError: there is none, or it is older than 17; install one.
    """
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    where = f"JAVA_HOME ({home})" if home else "PATH"
    if found is None:
        raise ConfigurationError(f"no java in {where}: install Java {OLDEST_JAVA} or newer")
    done = subprocess.run([found, "-version"], capture_output=True, text=True, check=False)
    version = java_major(done.stderr + done.stdout)
    if version is None:
        said = (done.stderr + done.stdout).strip().rpartition("\n")[2]
        raise ConfigurationError(f"{found} (from {where}) says no version: exit status {done.returncode}, {said!r}")
    if version < OLDEST_JAVA:
        raise ConfigurationError(f"{found} (from {where}) is Java {version}: install Java {OLDEST_JAVA} or newer")
    return found


def java_major(printed: str) -> int | None:
    """Return the major version in the output of `java -version` (1.8 counts as 8), or None."""
    match = re.search(r'version "(?:1\.)?(\d+)', printed)
    return int(match.group(1)) if match else None
