"""How a breach is planted into the script of a clean run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from tests.chaos.checker.violation import Kind
from tests.chaos.history.entries import DONE, Republished, WaitEntry
from tests.chaos.history.history import History
from tests.unit.chaos.script import Script

T = TypeVar("T")


class Choose(Protocol):
    """Picks one of several."""

    def __call__(self, several: Sequence[T]) -> T:
        """Return one of them."""


@dataclass(frozen=True, slots=True)
class Breach:
    """What is planted, which rule must find it, and which others do too since it can't be had without."""

    kind: Kind
    name: str
    plant: Callable[[Script, Choose], History]
    beside: frozenset[Kind] = frozenset()


BREACHES: list[Breach] = []


def breach(kind: Kind, name: str, *beside: Kind) -> Callable[[Callable[[Script, Choose], History]], None]:
    """Add a breach to the list."""

    def added(plant: Callable[[Script, Choose], History]) -> None:
        BREACHES.append(Breach(kind, name, plant, frozenset(beside)))

    return added


def swapped(several: Iterable[T], old: T, new: T) -> list[T]:
    """Return several with one of them replaced."""
    return [new if each is old else each for each in several]


def done_ones(script: Script) -> list[WaitEntry]:
    """Return registrations that were the only ones of their ids and ended as done, in calm times."""
    ended = {entry.wait_id for entry in script.wait_log if entry.outcome == DONE}
    count: dict[str, int] = {}
    for entry in script.wait_log:
        count[entry.wait_id] = count.get(entry.wait_id, 0) + 1
    return [
        entry
        for entry in script.wait_log
        if entry.registration and not entry.registration.source and entry.wait_id in ended and count[entry.wait_id] == 2
    ]


def taken(script: Script, place: tuple[str, int, int] | None = None, policy: str = "dlq") -> WaitEntry:
    """Return a registration of a new record, committed, long after the last fault."""
    script.wait(30_000)
    place = place or script.publish(1)
    entry = script.register(place, policy=policy)
    script.commit(place)
    script.look()
    return entry


def taken_at_once(script: Script, instance: str) -> WaitEntry:
    """Return a registration of a new record, committed."""
    place = script.publish(2)
    entry = script.register(place, instance)
    script.commit(place)
    return entry


def together(script: Script, count: int, instances: int) -> None:
    """Let so many calls be in flight at once, long after the last fault."""
    script.wait(30_000)
    entries = [taken_at_once(script, f"processor-{1 + number % instances}/1") for number in range(count)]
    script.wait(5)
    began_ms = script.now_ms
    for entry in entries:
        call = script.call(entry)
        script.calls = swapped(script.calls, call, replace(call, started_ms=began_ms))
        script.tombstone(entry)


def named(letter: Republished) -> tuple[int, int] | None:
    """Return the registration that a dead letter names."""
    return None if letter.lineage is None else letter.lineage.registration
