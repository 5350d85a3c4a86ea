"""The lists of clauses and faults, the marks on the tests, the safeguards and docs/evidence.md fit together."""

from __future__ import annotations

import re

import pytest

from tests import evidence
from tests.safeguards.catalogue import NOTHING, Safeguard, all_safeguards
from tests.safeguards.run import nodes_of

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


@pytest.mark.parametrize("safeguard", all_safeguards(), ids=lambda safeguard: safeguard.name)
def test_a_safeguard_can_be_removed_and_has_a_clause_with_tests(safeguard: Safeguard) -> None:
    with pytest.MonkeyPatch.context() as patch:
        safeguard.remove(patch)
    assert safeguard.clause in evidence.clauses()
    assert nodes_of(safeguard) or not safeguard.real
    assert safeguard.without.endswith("."), "a sentence"
    assert bool(safeguard.reason) == (NOTHING in safeguard.breaks)


def test_the_evidence_page_is_what_the_marks_say() -> None:
    assert evidence.PAGE.read_text("utf-8") == evidence.page(), "run `python -m tests.evidence`"


def test_no_test_imports_a_private_name_of_the_product() -> None:
    """Ruff's rule SLF001 finds private attributes, and no imports."""
    private = re.compile(r"^ *from (?:wait_registry|processor|sink|sweeper)[\w.]* import (?:\([^)]*|.*)\b_[a-z]", re.M)
    files = (evidence.ROOT / "tests").rglob("*.py")
    assert [path.name for path in files if private.search(path.read_text("utf-8"))] == []
