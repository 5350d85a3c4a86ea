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
        """Return a sentence for each group that commits under a larger allowance; a new one is logged as well.

        Args:
            sources: where the exported records were consumed, and by which group.
        """
        by_group: dict[str, list[tuple[str, int]]] = {}
        for source in sorted(sources):
            by_group.setdefault(source.group, []).append((source.topic, source.partition))
        return tuple(str(difference) for group, places in by_group.items() for difference in self._of(group, places))

    def _of(self, group: str, places: list[tuple[str, int]]) -> list[RuleDifference]:
        now_s = self._clock.monotonic()
        known = self._found.get(group, [])
        if group in self._asked_s and now_s - self._asked_s[group] < ASK_EVERY_S:
            return known
        self._asked_s[group] = now_s
        found = self._ask(group, places)
        for difference in found:
            if difference not in known:
                log.warning("%s", difference)
        self._found[group] = found
        return found

    def _ask(self, group: str, places: list[tuple[str, int]]) -> list[RuleDifference]:
        try:
            rules = committed_rules(self._kafka, group, places)
        except WaitRegistryError as error:
            # Only a comparison is lost: a sweeper needs no right on a group to export its records.
            log.info("the rules of group %s can't be compared with this sweeper's: %s", group, error)
            return []
        differing = allowance_differences(group, rules, self._allowance_s)
        return [difference for difference in differing if difference.committed_s > difference.own_s]
