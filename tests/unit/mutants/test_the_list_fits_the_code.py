"""The committed faults can be planted in the code as it is, and name tests that exist."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.mutants.mutant import Mutant, load_mutants
from tests.mutants.trial import Run, Verdict, judge
from tests.support.named_tests import ROOT, is_test

MUTANTS = load_mutants()


def test_names_and_changes_are_unique() -> None:
    assert [name for name, count in Counter(mutant.name for mutant in MUTANTS).items() if count > 1] == []
    changes = Counter((mutant.file, mutant.old, mutant.new) for mutant in MUTANTS)
    assert [change for change, count in changes.items() if count > 1] == []


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_changes_a_text_that_stands_once_and_names_a_test(mutant: Mutant) -> None:
    assert (ROOT / mutant.file).read_text(encoding="utf-8").count(mutant.old) == 1, mutant.file
    assert mutant.new != mutant.old
    assert not mutant.file.startswith("tests/"), "the product is changed, never a test"
    assert is_test(mutant.test), mutant.test
    assert re.fullmatch(r"P[1-8]( P[1-8])*", mutant.promise)
    assert mutant.breaks.endswith("."), "a sentence"


@pytest.mark.parametrize(
    ("status", "output", "verdict"),
    [
        (1, "FAILED tests/a.py::test_x - AssertionError: no\n1 failed in 2.00s", Verdict.KILLED),
        (1, "FAILED tests/a.py::test_x[two words] - assert 1 == 2\n1 failed in 2.00s", Verdict.KILLED),
        (1, "FAILED tests/a.py::test_x\n1 failed in 2.00s", Verdict.KILLED),
        (1, "FAILED tests/a.py::test_x - NameError: name 'gone' is not defined\n1 failed in 2.00s", Verdict.BROKEN),
        (1, "ERROR tests/a.py::test_x - OSError: the broker did not start\n1 error in 2.00s", Verdict.BROKEN),
        (1, "FAILED tests/a.py::test_x_and_more - AssertionError\n1 failed in 2.00s", Verdict.BROKEN),
        (2, "ERROR tests/a.py - SyntaxError\n1 error in 0.10s", Verdict.BROKEN),
        (4, "ERROR: not found: tests/a.py::test_x\n", Verdict.BROKEN),
        (0, "1 passed in 2.00s", Verdict.SURVIVED),
        (0, "1 skipped in 2.00s", Verdict.BROKEN),
        (None, "", Verdict.BROKEN),
    ],
)
def test_only_the_failing_of_the_named_test_itself_kills(status: int | None, output: str, verdict: Verdict) -> None:
    assert judge("tests/a.py::test_x", Run(status, output)).verdict is verdict
