"""Whether the groups whose records are exported count on more time for clocks than this sweeper gives them."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from sweeper.partition_result import Source
from wait_registry.clock import Clock
from wait_registry.errors import WaitRegistryError
from wait_registry.kafka.commit_metadata import committed_rules
from wait_registry.kafka.time_rules import RuleDifference, allowance_differences
from wait_registry.settings.root import Settings

log = logging.getLogger(__name__)

# A group is asked again after this long: its commits follow a changed setting within a rolling restart.
ASK_EVERY_S = 600.0
# What all the questions after one sweep may take.
ASK_LIMIT_S = 2.0


class GroupRules:
    """Reads the rules from the groups' own commits, and only warns: what is due stays the decision of one clock."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        """Ask nothing yet.

        Args:
            settings: the cluster, and the sweeper's own wait.skew_allowance_s.
            clock: for the time between two questions about a group.
        """
        self._kafka = settings.kafka
        self._allowance_s = settings.wait.skew_allowance_s
        self._clock = clock
        self._asked_s: dict[str, float] = {}
        self._found: dict[str, list[RuleDifference]] = {}

    def warnings(self, sources: Iterable[Source]) -> tuple[str, ...]:
        """Return a sentence for each group that is known to commit under a larger allowance; nothing is asked.

        Args:
            sources: where the exported records were consumed, and by which group.
        """
        groups = sorted({source.group for source in sources})
        return tuple(str(difference) for group in groups for difference in self._found.get(group, []))

    def ask(self, sources: Iterable[Source]) -> None:
        """Ask about groups that weren't asked lately, for `ASK_LIMIT_S` at most; a new difference is logged.

        The first question that fails is the last: what it took would be taken by each, and a later sweep goes on.

        Args:
            sources: where the exported records were consumed, and by which group.
        """
        by_group: dict[str, list[tuple[str, int]]] = {}
        for source in sorted(sources):
            by_group.setdefault(source.group, []).append((source.topic, source.partition))
        until_s = self._clock.monotonic() + ASK_LIMIT_S
        for group, places in by_group.items():
            now_s = self._clock.monotonic()
            if group in self._asked_s and now_s - self._asked_s[group] < ASK_EVERY_S:
                continue
            if now_s >= until_s:
                return
            self._asked_s[group] = now_s
            if not self._answered(group, places, until_s - now_s):
                return

    def _answered(self, group: str, places: list[tuple[str, int]], timeout_s: float) -> bool:
        try:
            rules = committed_rules(self._kafka, group, places, timeout_s)
        except WaitRegistryError as error:
            # Only a comparison is lost: a sweeper needs no right on a group to export its records.
            log.info(
                "the rules of group %s can't be compared with this sweeper's, which exports without: %s. The right to "
                "see the group (DESCRIBE) may be missing",
                group,
                error,
            )
            return False
        known = self._found.get(group, [])
        differing = allowance_differences(group, rules, self._allowance_s)
        self._found[group] = found = [one for one in differing if one.committed_s > one.own_s]
        for difference in found:
            if difference not in known:
                log.warning("%s", difference)
        return True
