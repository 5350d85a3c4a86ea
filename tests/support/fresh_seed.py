"""The first seed of random runs: another one for each commit, so that the code isn't fitted to a range of seeds.

``python -m tests.support.fresh_seed [N]`` prints it, or the one N further.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

VARIABLE: Final = "FIRST_SEED"


def first_seed() -> int:
    """Return the seed that the environment names, else one from the commit's hash, 1 without a repository."""
    if given := os.environ.get(VARIABLE):
        return int(given)
    git = ["git", "rev-parse", "HEAD"]
    done = subprocess.run(git, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return int(done.stdout or "1", 16) % 1_000_000_000


if __name__ == "__main__":
    print(first_seed() + int(sys.argv[1] if len(sys.argv) > 1 else 0))
