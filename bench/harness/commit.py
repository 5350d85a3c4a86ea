"""Which state of the product is measured: the last commit that changed it, and whether the tree differs from that."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

# Changes of these leave what was measured true: words, tests, and what the harness itself writes.
NOT_MEASURED: Final = ("docs", "tests", "*.md", "bench/rounds.jsonl", "bench/plots")
# What isn't tracked counts in these alone: elsewhere lie notes and logs.
PYTHON: Final = ("bench", "processor", "sink", "sweeper", "wait_registry")
FOLDERS: Final = (*PYTHON, "connect-configs", "jvm", "setup", "sql")
LEFT_BEHIND: Final = ("*.log", "*.out", "*.err", "*.tmp")
DIGITS: Final = 12
UNKNOWN: Final = "unknown"


def product_commit(root: Path) -> str:
    """Return the commit that last changed the product, with `-dirty-` and a digest where the tree differs from it.

    The digest tells one uncommitted state from another, so that their figures don't meet in one table either.
    `unknown` where there is no git repository.
    """
    try:
        tracked = _without(NOT_MEASURED, ".")
        commit = _git(root, "log", "-1", "--format=%H", "--", *tracked).decode().strip()
        difference = _git(root, "diff", "HEAD", "--binary", "--", *tracked)
        added = _without((*NOT_MEASURED, *LEFT_BEHIND), *FOLDERS)
        untracked = _git(root, "ls-files", "--others", "--exclude-standard", "-z", "--", *added)
    except (OSError, subprocess.CalledProcessError):
        return UNKNOWN
    if not difference and not untracked:
        return commit[:DIGITS]
    digest = hashlib.sha256(difference)
    for name in sorted(filter(None, untracked.split(b"\0"))):
        digest.update(name + b"\0" + _contents(root / name.decode("utf-8", "surrogateescape")))
    return f"{commit[:DIGITS]}-dirty-{digest.hexdigest()[:6]}"


def _without(left_out: Sequence[str], *paths: str) -> list[str]:
    """Return what git is to look at: the paths, but for some of what lies in them."""
    return [*paths, *(f":(exclude){path}" for path in left_out)]


def _git(root: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, check=True).stdout


def _contents(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""  # removed meanwhile, or a link that leads nowhere
