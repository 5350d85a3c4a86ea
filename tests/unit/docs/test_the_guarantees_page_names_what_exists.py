"""docs/guarantees.md: every test, mutant and file it names exists, and every mutant stands beside its promises."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.mutants.mutant import Mutant, load_mutants
from tests.support.named_tests import ROOT, is_test

PAGE = ROOT / "docs" / "guarantees.md"
ROW = re.compile(r"^\| (?P<what>.+?) \| `(?P<file>[^`]+)` \| `(?P<test>[^`]+)` \| (?:`(?P<mutant>[^`]+)`|–) \|$")
MUTANTS = {mutant.name: mutant for mutant in load_mutants()}


@dataclass(frozen=True)
class Line:
    """One line of a promise's table."""

    promise: str
    file: str
    test: str
    mutant: str | None


def lines() -> Iterator[Line]:
    promise = ""
    for text in PAGE.read_text(encoding="utf-8").splitlines():
        if heading := re.match(r"^## (P[1-8]): ", text):
            promise = heading[1]
        elif text.startswith("## "):
            promise = ""
        if promise and text.startswith("| ") and not text.startswith("| what "):
            row = ROW.match(text)
            assert row is not None, f"no line of the table: {text}"
            yield Line(promise, row["file"], row["test"], row["mutant"])


LINES = list(lines())


def test_every_promise_has_its_table() -> None:
    assert {line.promise for line in LINES} == {f"P{number}" for number in range(1, 9)}


@pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line.promise} {line.file}")
def test_what_a_line_names_exists(line: Line) -> None:
    assert (ROOT / line.file).is_file(), line.file
    assert is_test(line.test), line.test
    if line.mutant is not None:
        assert line.mutant in MUTANTS, line.mutant
        assert line.test == MUTANTS[line.mutant].test
        assert line.promise in MUTANTS[line.mutant].promise.split()


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=lambda mutant: mutant.name)
def test_every_mutant_stands_beside_every_promise_that_it_breaks(mutant: Mutant) -> None:
    promises = {line.promise for line in LINES if line.mutant == mutant.name}
    assert promises == set(mutant.promise.split())


SHOWN = re.compile(r"^\| (?P<what>P[1-8]|TLS, SASL) \|(?P<cells>.+)\|$")
COMBINATIONS = 4


def cells_with_kafka_connect() -> dict[str, list[str]]:
    """Return the cells of the table that shows the promises beside Kafka Connect, by promise."""
    section = PAGE.read_text(encoding="utf-8").partition("## With Kafka Connect")[2].partition("\n## ")[0]
    rows = (SHOWN.match(line) for line in section.splitlines())
    return {row["what"]: row["cells"].split("|") for row in rows if row}


def test_each_combination_with_kafka_connect_shows_each_promise_by_a_test_that_exists_once() -> None:
    shown = cells_with_kafka_connect()
    assert set(shown) == {*(f"P{number}" for number in range(1, 9)), "TLS, SASL"}
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    for what, cells in shown.items():
        assert len(cells) == COMBINATIONS, what
        for cell in cells:
            names = re.findall(r"`(test_\w+)`", cell)
            assert names, f"{what}: {cell}"
            for name in names:
                assert sum(len(re.findall(rf"def {name}\(", source)) for source in sources) == 1, name
