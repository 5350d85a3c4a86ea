"""What an image installs: the part of the lock that some extras need, whole and no more."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[3]


def locked(*wanted: str) -> dict[str, str]:
    """Return name -> block of the part that the script prints."""
    done = subprocess.run(
        [sys.executable, "setup/locked_for.py", "requirements.txt", *wanted],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    blocks = re.split(r"(?m)^(?=[a-z0-9])", done.stdout)[1:]
    return {block.partition("==")[0]: block for block in blocks}


def needs(extras: tuple[str, ...]) -> set[str]:
    """Return everything that this project needs, by pyproject.toml and the metadata of what is installed here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    optional = project["optional-dependencies"]
    lines = [*project["dependencies"], *(line for extra in extras for line in optional[extra])]
    found: set[str] = set()
    open_ends = [Requirement(line) for line in lines]
    while open_ends:
        need = open_ends.pop()
        name = re.sub(r"[-_.]+", "-", need.name).lower()
        if name == project["name"]:
            open_ends += [Requirement(line) for extra in need.extras for line in optional[extra]]
            continue
        if name in found:
            continue
        found.add(name)
        for line in requires(name) or ():
            further = Requirement(line)
            if not further.marker or any(further.marker.evaluate({"extra": extra}) for extra in ("", *need.extras)):
                open_ends.append(further)
    return found


@pytest.mark.parametrize("extras", [(), ("query",), ("otel", "grpc"), ("sink", "sweeper", "otel"), ("all",)])
def test_it_holds_everything_that_is_needed_and_nothing_else(extras: tuple[str, ...]) -> None:
    assert set(locked(*extras)) == needs(extras)


def test_what_is_not_locked_is_refused() -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        locked("flask")
    assert "not locked: flask" in refused.value.stderr
