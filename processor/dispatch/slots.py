"""The worker slots: which records wait for one, and which start next."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from processor.dispatch.concurrency import ConcurrencyLimit
from processor.dispatch.scheduler import Scheduler
from processor.lifecycle import Entry, State, Step, take_all

_MAY_RENEW: Final = frozenset({State.HELD, State.READY_REGISTERED})


class Slots:
    """Starts records while slots are free, unless too little of their time to live is left.

    Args:
        scheduler: which record is next; empty.
        limit: how many calls may run.

    Attributes:
        running: how many calls run.
        blocked: how many calls have an outcome and keep their slot.
    """

    def __init__(self, scheduler: Scheduler, limit: ConcurrencyLimit) -> None:
        self._scheduler = scheduler
        self._limit = limit
        self.running = 0
        self.blocked = 0
        # Registered again after they had waited for a slot.
        self._renewing: set[Entry] = set()
        # Too little time was left when a slot was free, and their first registration isn't acknowledged.
        self._late: set[Entry] = set()
        self._overdue_from_s = math.inf

    def __len__(self) -> int:
        """Return how many records wait."""
        return len(self._scheduler)

    @property
    def free(self) -> int:
        """How many slots are free."""
        return self._limit.current - self.running - self.blocked

    def add(self, entries: Sequence[Entry]) -> None:
        """Take records that may start."""
        self._scheduler.add(entries)
        self._watch(entries)

    def _watch(self, entries: Iterable[Entry]) -> None:
        """Note until when the first of the records that wait must start."""
        first_s = self._overdue_from_s
        for entry in entries:
            lifetime = entry.lifetime
            if lifetime is not None and lifetime.start_by_s < first_s:
                first_s = lifetime.start_by_s
        self._overdue_from_s = first_s

    def reported(self, entry: Entry) -> None:
        """Note that the registration of a record that waits is acknowledged or refused."""
        self._watch([entry])
        if entry in self._late:
            self._late.remove(entry)
            self._scheduler.add_first([entry])

    def renewed(self, entries: Iterable[Entry]) -> None:
        """Let records whose second registration is acknowledged start first, if they had waited before."""
        if not self._renewing:
            return
        again = [entry for entry in entries if entry in self._renewing and entry.state is State.HELD]
        self._renewing.difference_update(again)
        take_all(again, Step.RELEASE)
        self._watch(again)
        self._scheduler.add_first(again)

    def start(self, now_s: float) -> tuple[list[Entry], list[Entry]]:
        """Start records in the free slots.

        Returns:
            The started records, and those that must be registered again before.
        """
        started: list[Entry] = []
        overdue: list[Entry] = []
        while (free := self.free) > 0:
            taken = self._scheduler.take(free)
            if not taken:
                break
            ready = [
                entry
                for entry in taken
                if (lifetime := entry.lifetime) is None or lifetime.start_by_s >= now_s or not self._lacks_time(entry)
            ]
            if len(ready) < len(taken):
                overdue += [entry for entry in taken if is_overdue(entry, now_s)]
            take_all(ready, Step.START)
            self.running += len(ready)
            started += ready
        self._renewing.update(overdue)
        return started, overdue

    def _lacks_time(self, entry: Entry) -> bool:
        """Return whether a record of which little time to live is left can't start."""
        if entry.state is State.READY_REGISTERING:
            self._late.add(entry)
            return True
        return entry.state in _MAY_RENEW

    def take_overdue(self, now_s: float) -> list[Entry]:
        """Return the waiting records that must be registered again: all slots may be busy for long."""
        if self._overdue_from_s >= now_s:
            return []
        overdue = self._scheduler.remove(lambda entry: is_overdue(entry, now_s))
        self._overdue_from_s = math.inf
        self._watch(self._scheduler)
        self._renewing.update(overdue)
        return overdue

    def drop(self) -> None:
        """Forget the waiting records that are the next owner's now."""
        self._scheduler.remove(lambda entry: entry.state is State.DROPPED)
        self._late = {entry for entry in self._late if entry.state is not State.DROPPED}


def is_overdue(entry: Entry, now_s: float) -> bool:
    """Return whether too little is left of a registered record's time to live to start its call."""
    return entry.state in _MAY_RENEW and entry.lifetime is not None and entry.lifetime.start_by_s < now_s
