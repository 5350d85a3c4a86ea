"""Where the rules about time of a group's commits differ from one's own."""

from __future__ import annotations

import logging

import pytest

from processor.rule_watch import RuleWatch
from wait_registry.kafka.time_rules import TimeRules, allowance_differences, differences

OWN = TimeRules(300, 5)


def test_the_same_rules_differ_in_nothing() -> None:
    assert list(differences("shop", [OWN, OWN], OWN)) == []


def test_each_difference_comes_once_and_says_what_follows() -> None:
    committed = [TimeRules(900, 5), TimeRules(900, 30), TimeRules(300, 30), OWN]
    ttl, allowance = (str(found) for found in differences("shop", committed, OWN))
    assert ttl.startswith("group shop has committed offsets under processor.ttl_s = 900 s, here it is 300 s: ")
    assert allowance.startswith("group shop has committed offsets under wait.skew_allowance_s = 30 s, here it is 5 s: ")
    assert "exported" in allowance


def test_a_sweeper_compares_the_allowance_alone() -> None:
    found = allowance_differences("shop", [TimeRules(900, 5), TimeRules(900, 30)], 5)
    assert [(one.setting, one.committed_s) for one in found] == [("wait.skew_allowance_s", 30)]


def test_a_processor_tells_a_difference_once(caplog: pytest.LogCaptureFixture) -> None:
    watch = RuleWatch("shop", OWN)
    with caplog.at_level(logging.WARNING):
        for committed in (TimeRules(900, 5), OWN, TimeRules(900, 5), TimeRules(600, 5)):
            watch.seen(committed)
    assert [record.getMessage().partition(",")[0] for record in caplog.records] == [
        "group shop has committed offsets under processor.ttl_s = 900 s",
        "group shop has committed offsets under processor.ttl_s = 600 s",
    ]
