"""Print the part of requirements.txt that some extras need, with its hashes: what an image installs.

Usage: locked_for.py LOCK [EXTRA|PACKAGE]... - the distribution's own dependencies are always part of it. It uses only
Python's own library, since it runs before anything is installed.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def locked_part(lock: str, wanted: Iterable[str]) -> str:
    """Return the lines of the wanted packages and of everything that they need, in the lock's order.

    The lock itself says what needs a package, in the comment that pip-compile writes below it.

    Raises:
        KeyError: if a wanted package isn't locked.
    """
    blocks = dict(_blocks(lock))
    needed_by = {name: _needed_by(block) for name, block in blocks.items()}
    taken = {_name_of(one) for one in wanted}
    if missing := taken - blocks.keys():
        raise KeyError(f"not locked: {', '.join(sorted(missing))}")
    while more := {name for name in blocks.keys() - taken if taken & needed_by[name]}:
        taken |= more
    return "".join(block for name, block in blocks.items() if name in taken)


def direct_dependencies(project: Mapping[str, object], extras: Iterable[str]) -> list[str]:
    """Return what pyproject.toml asks for itself and for these extras; a name that is no extra is a package."""
    section = project["project"]
    assert isinstance(section, dict)
    optional: dict[str, list[str]] = section["optional-dependencies"]
    own: list[str] = section["dependencies"]
    return [*own, *(one for extra in extras for one in _packages_of(extra, optional))]


def _packages_of(extra: str, optional: Mapping[str, list[str]]) -> Iterator[str]:
    for one in optional.get(extra, [extra]):
        further = re.fullmatch(r"wait-registry\[(.+)\]", one)
        if further is None:
            yield one
        else:
            yield from (package for name in further[1].split(",") for package in _packages_of(name, optional))


def _blocks(lock: str) -> Iterator[tuple[str, str]]:
    for block in re.split(r"(?m)^(?=[a-z0-9])", lock)[1:]:
        yield _name_of(block), block


def _needed_by(block: str) -> set[str]:
    return {_name_of(who) for who in re.findall(r"(?m)^    # +(?:via +)?([a-z0-9]\S*)", block)}


def _name_of(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found is not None, requirement
    return re.sub(r"[-_.]+", "-", found[0]).lower()


if __name__ == "__main__":
    text = Path(sys.argv[1]).read_text("utf-8")
    asked = direct_dependencies(tomllib.loads(PROJECT.read_text("utf-8")), sys.argv[2:])
    sys.stdout.write(locked_part(text, asked))
