"""The lists of clauses and faults, the marks on the tests, the mutants and docs/evidence.md fit together."""

from __future__ import annotations

import re

import pytest

from tests import evidence
from tests.mutants.mutant import Mutant, all_mutants
from tests.mutants.run import nodes_of

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


def test_no_test_imports_a_private_name_of_the_product() -> None:
    """Ruff's rule SLF001 finds private attributes, and no imports."""
    private = re.compile(r"^ *from (?:wait_registry|processor|sink|sweeper)[\w.]* import (?:\([^)]*|.*)\b_[a-z]", re.M)
    files = [path for path in (evidence.ROOT / "tests").rglob("*.py") if "mutants" not in path.parts]
    assert [path.name for path in files if private.search(path.read_text("utf-8"))] == []
