"""Warns of a transaction that stays open in a consumed topic: nothing behind its first record can be read."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from processor.intake.assigned_log import AssignedLog
from wait_registry.daemon_threads import in_daemon_thread
from wait_registry.records.topics import TopicPartition

log = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 15.0
# The services' own transactions end after 30 s at most.
OPEN_FOR_S: Final = 60.0


@dataclass(slots=True)
class OpenTransactions:
    """Looks at partitions that have lag and from which no record has come for `OPEN_FOR_S`.

    A lack of room or time has the same look, so the broker is asked whether there is a record that may be read.

    Args:
        assigned: the logs of the assigned partitions.
        stable_ends: returns the last stable offsets of partitions, of those for which the broker answers in time.
        monotonic: returns seconds of a clock that never steps.
    """

    assigned: Mapping[TopicPartition, AssignedLog]
    stable_ends: Callable[[Iterable[TopicPartition]], Mapping[TopicPartition, int]]
    monotonic: Callable[[], float]
    # Since when a log is at its position.
    _since_s: dict[tuple[AssignedLog, int], float] = field(default_factory=dict, init=False)
    _warned: set[tuple[AssignedLog, int]] = field(default_factory=set, init=False)

    async def run_once(self) -> None:
        """Look once; warn once of each place where nothing can be read."""
        now_s = self.monotonic()
        behind = [(owner, owner.position) for owner in self.assigned.values() if owner.lag]
        self._since_s = {at: self._since_s.get(at, now_s) for at in behind}
        self._warned.intersection_update(behind)
        halted = {at[0].place: at for at in behind if self._has_halted(at, now_s)}
        ends = await in_daemon_thread("open-transactions", self.stable_ends, halted)
        for place, end in ends.items():
            owner, position = at = halted[place]
            if end <= position:
                self._warned.add(at)
                log.warning(
                    "no record of %r could be read for %.0f s, although its log has %d more offsets: a transaction is "
                    "open at offset %d. Other partitions continue. See docs/runbook.md, 'Transaction stays open'",
                    owner,
                    now_s - self._since_s[at],
                    owner.lag or 0,
                    end,
                )

    def _has_halted(self, at: tuple[AssignedLog, int], now_s: float) -> bool:
        return now_s - self._since_s[at] >= OPEN_FOR_S and at not in self._warned
