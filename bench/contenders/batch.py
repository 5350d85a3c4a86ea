"""The demo's baseline: poll, run all at once, commit, with the same handler and timeout."""

from __future__ import annotations

import sys

from bench.contenders.registry import main

if __name__ == "__main__":
    main(["--baseline", *sys.argv[1:]])
