"""The machine, what runs on it, and how busy it is."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg
from confluent_kafka import libversion

from wait_registry.jvm import jars_home, java_command

PACKAGES: Final = ("confluent-kafka", "orjson", "aiohttp", "pyspark", "pyarrow", "psycopg")
BYTES_PER_GIB: Final = 2**30
# Below this share of its cores somebody else's work changes ratios less than rounds differ anyway.
QUIET_SHARE: Final = 0.1
SAMPLE_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Busyness:
    """How busy a machine is that should be idle.

    Attributes:
        load: the average number of processes that ran or waited in the last minute, our own last ones among them.
        share: of all cores' time that was used in the last second; None where the system doesn't tell.
        cores: how many there are.
    """

    load: float
    share: float | None
    cores: int

    @property
    def quiet(self) -> bool:
        """Whether figures mean something now. The load lags behind, so it decides only where there is nothing else."""
        return (self.load / self.cores if self.share is None else self.share) <= QUIET_SHARE

    def __str__(self) -> str:
        used = "" if self.share is None else f", {self.share:.0%} of their time used"
        return f"load average {self.load:.1f} on {self.cores} cores{used}"


def machine() -> str:
    """Return the machine in words, without its name."""
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / BYTES_PER_GIB
    return f"{_cpu()}, {cores()} cores, {memory_gib:.0f} GiB, {_system()}"


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def versions() -> dict[str, str]:
    """Return the versions of what is measured and of what it runs on, by name."""
    found = {"Python": platform.python_version(), "Java": _java(), "Kafka broker": _broker()}
    found |= {package: importlib.metadata.version(package) for package in PACKAGES}
    return {**found, "librdkafka": libversion()[0]}


def server_versions(postgres_url: str) -> dict[str, str]:
    """Return the version of the Postgres that runs at an address."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        row = connection.execute("show server_version").fetchone()
    return {"Postgres": row[0].split()[0]} if row else {}


def busyness(rest: Callable[[float], None] = time.sleep) -> Busyness:
    """Return how busy the machine is; takes the second that it looks at."""
    before = _ticks()
    if before is not None:
        rest(SAMPLE_S)
    after = _ticks()
    share = None
    if before is not None and after is not None:
        total, idle = after[0] - before[0], after[1] - before[1]
        share = 1 - idle / total if total > 0 else None
    return Busyness(os.getloadavg()[0], share, cores())


def summary(found: Mapping[str, str]) -> str:
    """Return versions as one line."""
    return ", ".join(f"{name} {version}" for name, version in found.items())


def _ticks() -> tuple[int, int] | None:
    """Return all ticks of all cores since the start of the system, and the idle ones of them (proc(5))."""
    try:
        fields = [int(field) for field in Path("/proc/stat").read_text("ascii").splitlines()[0].split()[1:9]]
    except (OSError, ValueError, IndexError):
        return None
    return sum(fields), fields[3] + fields[4]


def _cpu() -> str:
    try:
        found = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text("utf-8"), re.MULTILINE)
    except OSError:
        found = None
    return " ".join(found[1].split()) if found else platform.processor() or platform.machine()


def _system() -> str:
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        name = platform.system()
    return f"{name}, kernel {platform.release().partition('-')[0]}"


def _java() -> str:
    said = subprocess.run([java_command(), "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "([^"]+)"', said)
    return found[1] if found else "unknown"


def _broker() -> str:
    jars = (jars_home() / "broker").glob("kafka_2.*.jar")
    found = next((match for jar in jars if (match := re.fullmatch(r"kafka_[\d.]+-([\d.]+)\.jar", jar.name))), None)
    return found[1] if found else "unknown"
