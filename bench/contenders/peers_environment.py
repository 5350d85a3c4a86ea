"""The environment of the Python peers: made when it is first wanted, by setup/bench_peers.sh."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PYTHON: Final = ROOT / ".waitreg" / "bench" / "peers" / "bin" / "python"
LOCK: Final = ROOT / "bench" / "peers.txt"
MAKE: Final = "sh setup/bench_peers.sh"


def peers_are_there() -> bool:
    """Return whether the environment has been made, whatever is in it."""
    return PYTHON.exists()


@cache
def peers_python() -> str:
    """Return the peers' Python; makes the environment first where it isn't as locked.

    Raises:
        OSError: it can't be made; the message has what was said.
    """
    done = subprocess.run([*MAKE.split()], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"the peers' environment can't be made ({MAKE}): {done.stderr.strip()}")
    return str(PYTHON)


def peer_version(name: str) -> str:
    """Return name and version of a peer as they are locked."""
    found = re.search(rf"^{re.escape(name)}==(\S+)", LOCK.read_text("utf-8"), re.MULTILINE)
    if found is None:
        raise KeyError(f"{LOCK.name} locks no {name}")
    return f"{name} {found[1]}"
