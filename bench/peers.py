"""What the benchmark compares the product with: Python peers in an environment of their own, and Java peers' jars.

`python -m bench.peers` fetches the jars of the Parallel Consumer, as bench/jars lists them with their SHA-256 sums.
"""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Final

from bench.harness.row import ROOT
from wait_registry.errors import ConfigurationError
from wait_registry.jar_fetching import fetch_jars
from wait_registry.jvm import committed_sums, verify_jars

LISTS: Final = ROOT / "bench" / "jars"
HOME: Final = ROOT / ".waitreg" / "bench" / "jars"
PARALLEL_CONSUMER: Final = "parallel-consumer"


@cache
def peers_python() -> str:
    """Return the peers' Python; makes their environment first where it isn't as locked."""
    done = subprocess.run(["sh", "setup/bench_peers.sh"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ConfigurationError(f"setup/bench_peers.sh can't make the peers' environment: {done.stderr.strip()}")
    return str(ROOT / done.stdout.strip())


def parallel_consumer_jars() -> Path:
    """Return the folder of the Parallel Consumer's jars; raises ConfigurationError unless they are as committed."""
    directory = HOME / PARALLEL_CONSUMER
    try:
        verify_jars(directory, committed_sums(PARALLEL_CONSUMER, LISTS))
    except ConfigurationError as problem:
        raise ConfigurationError(f"run `make bench-peers`: {problem}") from None
    return directory


if __name__ == "__main__":
    try:
        fetch_jars(HOME, (PARALLEL_CONSUMER,), LISTS)
    except ConfigurationError as problem:
        print(f"bench: {problem}", file=sys.stderr)
        sys.exit(problem.exit_code)
