"""The first seed of random runs: another one for each commit, so that the code isn't fitted to a range of seeds."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

VARIABLE: Final = "FIRST_SEED"


def first_seed() -> int:
    """Return the seed that the environment names, else one from the commit's hash; print how to repeat it."""
    seed = int(os.environ.get(VARIABLE) or _of_the_commit())
    print(f"the first seed is {seed}; {VARIABLE}={seed} repeats it", flush=True)
    return seed


def _of_the_commit() -> int:
    """Return up to nine digits of the commit's hash, 1 outside of a repository."""
    git = ["git", "rev-parse", "HEAD"]
    done = subprocess.run(git, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return int(done.stdout or "1", 16) % 1_000_000_000
