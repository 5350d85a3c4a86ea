"""Which tier a test belongs to: the longest entry of tests/tiers.toml that begins its node ID says it."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Final

FAST, GATE, RELEASE = TIERS = ("fast", "gate", "release")
FILE: Final = Path(__file__).with_name("tiers.toml")


@cache
def entries() -> dict[str, str]:
    """Return the tier of each named folder, file or test."""
    tiers = tomllib.loads(FILE.read_text("utf-8"))["tier"]
    return {entry: tier for tier, named in tiers.items() for entry in named}


def tier_of(node: str) -> str:
    """Return the tier of a folder, file or test, by its path or node ID; what isn't named belongs to the gate."""
    found = [entry for entry in entries() if is_below(node, entry)]
    return entries()[max(found, key=len)] if found else GATE


def tiers_below(path: str) -> set[str]:
    """Return the tiers that tests of this folder or file belong to."""
    return {tier_of(path)} | {tier for entry, tier in entries().items() if is_below(entry, path)}


def missing_cases(nodes: set[str]) -> list[str]:
    """Return the named cases of parametrized tests that pytest didn't collect, of the files that it did collect."""
    files = {node.partition("::")[0] for node in nodes}
    return [entry for entry in entries() if "[" in entry and entry.partition("::")[0] in files and entry not in nodes]


@cache
def server_of(file: str) -> str | None:
    """Return the server of its own that tests of this file share, by tests/tiers.toml: one worker runs them all."""
    servers: dict[str, list[str]] = tomllib.loads(FILE.read_text("utf-8"))["server"]
    return next((server for server, paths in servers.items() if any(is_below(file, path) for path in paths)), None)


def is_below(node: str, entry: str) -> bool:
    """Return whether a path or node ID is an entry, or below it."""
    return node.startswith(entry) and (len(node) == len(entry) or node[len(entry)] in "/:[")
