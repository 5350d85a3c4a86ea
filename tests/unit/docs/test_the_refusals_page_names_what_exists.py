"""docs/refusals.md: every test it names exists, every case names one, and every file of tests/refusals is in it."""

from __future__ import annotations

import re

from tests.evidence import ROOT, all_tests

PAGE = (ROOT / "docs" / "refusals.md").read_text(encoding="utf-8")
NAMED = set(re.findall(r"`(test_\w+)`", PAGE))
# The tables of permissions name no tests.
WITHOUT = ("| service ", "| processor | READ", "| sink | READ", "| sweeper | READ")


def test_every_named_test_exists() -> None:
    assert NAMED - {test.name for test in all_tests()} == set()


def test_every_file_of_refusals_has_a_test_on_the_page() -> None:
    refusals = [test for test in all_tests() if test.file.is_relative_to(ROOT / "tests" / "refusals")]
    assert {test.file for test in refusals} == {test.file for test in refusals if test.name in NAMED}


def test_every_case_names_its_test() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and "| test |" not in line]
    assert [row for row in rows if "`test_" not in row and not row.startswith(WITHOUT)] == []
