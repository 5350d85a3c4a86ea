"""tests/faults/faults.toml: every test that it names exists, and every test of tests/faults stands in it."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

from tests.support.named_tests import ROOT, is_test

FAULTS = tomllib.loads((ROOT / "tests" / "faults" / "faults.toml").read_text(encoding="utf-8"))["fault"]
PROMISES = {f"P{number}" for number in range(1, 9)}
FILES = sorted((ROOT / "tests" / "faults").rglob("test_*.py"))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.get("name", "without a name"))
def test_a_fault_names_the_promises_it_is_tried_on_and_a_test_that_exists(fault: dict[str, str]) -> None:
    assert fault.keys() == {"name", "promise", "test"}
    assert set(fault["promise"].split()) <= PROMISES
    assert fault["promise"]
    assert is_test(fault["test"])


def test_no_entry_stands_there_twice() -> None:
    entries = [(fault["name"], fault["test"]) for fault in FAULTS]
    assert len(set(entries)) == len(entries)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_a_test_of_a_fault_stands_in_the_list(file: Path) -> None:
    named = {fault["test"] for fault in FAULTS}
    tests = [node.name for node in ast.parse(file.read_text("utf-8")).body if isinstance(node, ast.FunctionDef)]
    unnamed = {f"{file.relative_to(ROOT).as_posix()}::{name}" for name in tests if name.startswith("test_")} - named
    assert unnamed == set()
