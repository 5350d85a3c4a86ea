"""What `make bench` measures beside this project is fetched when it is about to measure, not before."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from bench.harness.process import ROOT
from wait_registry.errors import ConfigurationError

COMMAND: Final = ("make", "--no-print-directory", "bench-peers")


def fetch_peers(root: Path = ROOT) -> None:
    """Run `make bench-peers`, which takes a second when all is there.

    Raises:
        ConfigurationError: it failed; what it said stands on standard error. Nothing can be measured.
    """
    try:
        making = subprocess.Popen(COMMAND, cwd=root, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise ConfigurationError(f"saw no make ({error}), expected it in PATH: install it") from error
    with making:
        try:
            status = making.wait()
        except BaseException:
            making.terminate()  # make ends what it has started
            raise
    if status != 0:
        raise ConfigurationError(f"`make bench-peers` ended with status {status}, see above: mend that first")
