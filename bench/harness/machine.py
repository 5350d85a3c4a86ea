"""Where and on what it is measured: the machine, the versions, the commit, and whether the machine is busy."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
import time
from pathlib import Path
from typing import Final

from confluent_kafka import libversion

from bench.harness.row import ROOT
from wait_registry.java.jars import jars_home, java_command

PACKAGES: Final = ("confluent-kafka", "orjson", "aiohttp", "pyspark", "pyarrow", "psycopg")
# Below this share of the cores the work of others changes ratios less than rounds differ anyway.
QUIET_SHARE: Final = 0.1


def machine() -> str:
    """Return the machine in words, without its name."""
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cpu = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text("utf-8"), re.MULTILINE)
    system = f"{platform.freedesktop_os_release()['PRETTY_NAME']}, kernel {platform.release().partition('-')[0]}"
    name = " ".join(cpu[1].split()) if cpu else platform.machine()
    return f"{name}, {len(os.sched_getaffinity(0))} cores, {memory_gib:.0f} GiB, {system}"


def versions() -> dict[str, str]:
    """Return the versions of what is measured and of what it runs on."""
    said = subprocess.run([java_command(), "-version"], capture_output=True, text=True, check=False).stderr
    java = re.search(r'version "([^"]+)"', said)
    broker = [path.stem.partition("-")[2] for path in (jars_home() / "broker").glob("kafka_2.*.jar")]
    found = {"Python": platform.python_version(), "Java": java[1] if java else "unknown", "Kafka broker": broker[0]}
    found |= {package: importlib.metadata.version(package) for package in PACKAGES}
    return {**found, "librdkafka": libversion()[0]}


def product_commit() -> str:
    """Return the commit, with `-dirty` where the tree differs from it."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout.strip()


def noise(seconds: float = 1.0) -> str:
    """Return how busy the machine is when it should be idle; empty when it is quiet."""
    before = _ticks()
    time.sleep(seconds)
    total, idle = (after - then for after, then in zip(_ticks(), before, strict=True))
    share = 1 - idle / max(1, total)
    return "" if share <= QUIET_SHARE else f"{share:.0%} of the cores were in use"


def _ticks() -> tuple[int, int]:
    """Return all ticks of all cores since the system started, and the idle ones of them (proc(5))."""
    fields = [int(field) for field in Path("/proc/stat").read_text("ascii").splitlines()[0].split()[1:9]]
    return sum(fields), fields[3] + fields[4]
