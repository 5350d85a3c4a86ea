"""Says once when the group has worked under other rules about time than this process does."""

from __future__ import annotations

import logging

from wait_registry.kafka.time_rules import RuleDifference, TimeRules, differences

log = logging.getLogger(__name__)


class RuleWatch:
    """Compares the rules of commits with those of this process; never refuses, a change may be rolled out.

    Args:
        group: whose commits they are.
        own: the rules of this process.
    """

    def __init__(self, group: str, own: TimeRules) -> None:
        self._group = group
        self._own = own
        self._told: set[RuleDifference] = set()

    def seen(self, committed: TimeRules) -> None:
        """Take the rules of one commit; a difference that wasn't told yet is logged."""
        for difference in differences(self._group, [committed], self._own):
            if difference not in self._told:
                self._told.add(difference)
                log.warning("%s", difference)
