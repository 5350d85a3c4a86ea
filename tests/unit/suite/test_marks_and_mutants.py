"""The lists of clauses and faults, the marks on the tests, the mutants and docs/evidence.md fit together."""

from __future__ import annotations

import pytest

from tests import evidence
from tests.mutants.mutant import Mutant, all_mutants
from tests.mutants.run import Verdict, judge, nodes_of

TESTS = evidence.all_tests()


def test_every_clause_and_fault_has_a_test_and_every_mark_is_known() -> None:
    assert {id_ for test in TESTS for id_ in test.clauses} == evidence.clauses().keys()
    assert {id_ for test in TESTS for id_ in test.faults} == evidence.faults().keys()


def test_every_clause_and_fault_belongs_to_a_promise() -> None:
    promises = evidence.promises().keys()
    assert {id_.partition(".")[0] for id_ in evidence.clauses()} == promises
    assert {promise for fault in evidence.faults().values() for promise in fault["promise"].split()} < promises


def test_every_test_of_a_fault_names_it() -> None:
    folder = evidence.ROOT / "tests" / "faults"
    assert [test.name for test in TESTS if test.file.is_relative_to(folder) and not test.faults] == []


@pytest.mark.parametrize("mutant", all_mutants(), ids=lambda mutant: mutant.name)
def test_a_mutant_can_be_planted_and_has_a_clause_with_tests(mutant: Mutant) -> None:
    with pytest.MonkeyPatch.context() as patch:
        mutant.plant(patch)
    assert mutant.clause in evidence.clauses()
    assert nodes_of(mutant)
    assert mutant.breaks.endswith("."), "a sentence"


def test_the_evidence_page_is_what_the_marks_say() -> None:
    assert evidence.PAGE.read_text("utf-8") == evidence.page(), "run `python -m tests.evidence`"


@pytest.mark.parametrize(
    ("status", "output", "verdict"),
    [
        (1, "FAILED tests/a.py::test_x - AssertionError: no\n1 failed in 2.00s", Verdict.KILLED),
        (1, "FAILED tests/a.py::test_x[two words] - assert 1 == 2\n1 failed in 2.00s", Verdict.KILLED),
        (1, "FAILED tests/a.py::test_x - NameError: name 'gone' is not defined\n1 failed in 2.00s", Verdict.NOTHING),
        (1, "ERROR tests/a.py::test_x - OSError: the broker did not start\n1 error in 2.00s", Verdict.NOTHING),
        (2, "ERROR tests/a.py - SyntaxError\n1 error in 0.10s", Verdict.NOTHING),
        (0, "1 passed in 2.00s", Verdict.SURVIVED),
        (0, "1 skipped in 2.00s", Verdict.NOTHING),
        (None, "", Verdict.NOTHING),
    ],
)
def test_a_mutant_is_killed_by_an_assertion_that_fails(status: int | None, output: str, verdict: Verdict) -> None:
    assert judge(status, output)[0] is verdict
