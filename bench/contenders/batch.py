"""The product's other strategy, `batch`: poll, run all, commit; the same process, handler, time-outs and retries."""

from __future__ import annotations

import sys

from bench.contenders.registry import main

if __name__ == "__main__":
    main(["--strategy", "batch", *sys.argv[1:]])
