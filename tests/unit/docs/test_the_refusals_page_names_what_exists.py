"""docs/refusals.md: every test it names exists, and every file of tests/refusals is in it."""

from __future__ import annotations

import re

import pytest

from tests.support.named_tests import ROOT, is_test

PAGE = (ROOT / "docs" / "refusals.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[^`]+::[^`]+)`", PAGE)))
FILES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests" / "refusals").glob("test_*.py"))


@pytest.mark.parametrize("test", NAMED)
def test_a_named_test_exists(test: str) -> None:
    assert is_test(test)


@pytest.mark.parametrize("file", FILES)
def test_a_file_of_refusals_stands_on_the_page(file: str) -> None:
    assert f"`{file}::" in PAGE


def test_every_case_names_its_test() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and "| test |" not in line]
    without = [row for row in rows if "`tests/" not in row and not row.startswith(("| service ", "| processor | READ"))]
    assert [row for row in without if not row.startswith(("| sink | READ", "| sweeper | READ"))] == []
