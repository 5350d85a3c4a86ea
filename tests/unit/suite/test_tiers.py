"""tests/tiers.toml names what exists, and shows each clause in the tier where it belongs."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests import evidence, release, tiers

TESTS = evidence.all_tests()
NODES = {test.node for test in TESTS}
NAMED = tomllib.loads(tiers.FILE.read_text("utf-8"))
ELSEWHERE: dict[str, str] = NAMED["elsewhere"]


@pytest.mark.parametrize(
    "entry", sorted({*tiers.entries(), *(path for paths in NAMED["server"].values() for path in paths)})
)
def test_each_entry_exists(entry: str) -> None:
    file, _, test = entry.partition("::")
    assert (evidence.ROOT / file).exists()
    assert not test or entry.partition("[")[0] in NODES


@pytest.mark.parametrize("clause", evidence.clauses())
def test_each_clause_has_a_test_in_its_tier(clause: str) -> None:
    wanted = ELSEWHERE.get(clause, tiers.FAST)
    assert wanted in {tier for test in TESTS if clause in test.clauses for tier in tiers.tiers_below(test.node)}


def test_each_clause_shown_elsewhere_exists_and_is_shown_only_there() -> None:
    assert ELSEWHERE.keys() <= evidence.clauses().keys()
    fast = {clause for test in TESTS for clause in test.clauses if tiers.FAST in tiers.tiers_below(test.node)}
    assert fast.isdisjoint(ELSEWHERE)


def test_each_release_test_belongs_to_exactly_one_part() -> None:
    parts = release.test_paths()
    for node in sorted(NODES):
        if tiers.RELEASE in tiers.tiers_below(node):
            assert sum(tiers.is_below(node, path) for paths in parts.values() for path in paths) == 1, node


def test_each_target_of_the_makefile_is_run_by_the_gate_or_by_a_part() -> None:
    """What nothing runs breaks unseen."""
    makefile = (evidence.ROOT / "Makefile").read_text("utf-8")
    needed = {
        target: {*prerequisites.split("##")[0].split(), *re.findall(r"\$\(SUBMAKE\) ([a-z-]+)", recipe)}
        for target, prerequisites, recipe in re.findall(r"^([a-z-]+):(.*)((?:\n(?!\S+:).*)*)", makefile, re.MULTILINE)
    }
    commands = [(evidence.ROOT / ".ci" / "run").read_text("utf-8"), *release.parts().values()]
    run = {target for one in commands for asked in re.findall(r"\bmake([a-z -]+)", one) for target in asked.split()}
    while more := {target for one in run for target in needed.get(one, ())} - run:
        run |= more
    assert needed.keys() - run == {"release-tests", "release-check"}, "these two run the parts"
