"""Whether the groups whose records are exported count on more time for clocks than this sweeper gives them."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from wait_registry.clock import Clock
from wait_registry.errors import WaitRegistryError
from wait_registry.kafka.clients import Admin
from wait_registry.kafka.commit_metadata import committed_rules
from wait_registry.kafka.time_rules import RuleDifference, allowance_differences

log = logging.getLogger(__name__)

# A group is asked again after this long: its commits follow a changed setting within a rolling restart.
ASK_EVERY_S = 600.0


class GroupRules:
    """Reads the rules from the groups' own commits, and only warns: what is due stays the decision of one clock."""

    def __init__(self, admin: Admin, allowance_s: float, clock: Clock) -> None:
        """Ask nothing yet.

        Args:
            admin: asked once in a while for each group.
            allowance_s: the sweeper's own wait.skew_allowance_s.
            clock: for the time between two questions.
        """
        self._admin = admin
        self._allowance_s = allowance_s
        self._clock = clock
        self._asked_s: dict[str, float] = {}
        self._found: dict[str, list[RuleDifference]] = {}

    def warnings(self, groups: Iterable[str]) -> tuple[str, ...]:
        """Return a sentence for each group that commits under a larger allowance; a new one is logged as well."""
        return tuple(str(difference) for group in sorted(groups) for difference in self._of(group))

    def _of(self, group: str) -> list[RuleDifference]:
        now_s = self._clock.monotonic()
        known = self._found.get(group, [])
        if group in self._asked_s and now_s - self._asked_s[group] < ASK_EVERY_S:
            return known
        self._asked_s[group] = now_s
        found = self._ask(group)
        for difference in found:
            if difference not in known:
                log.warning("%s", difference)
        self._found[group] = found
        return found

    def _ask(self, group: str) -> list[RuleDifference]:
        try:
            rules = committed_rules(self._admin, group)
        except WaitRegistryError as error:
            # Only a comparison is lost: a sweeper needs no right on a group to export its records.
            log.info("the rules of group %s can't be compared with this sweeper's: %s", group, error)
            return []
        differing = allowance_differences(group, rules, self._allowance_s)
        return [difference for difference in differing if difference.committed_s > difference.own_s]
