"""What can be done with dead letters, as buttons: each leads to its dry run, or says which role it needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from wait_registry.records.operation import Kind
from waitreg.console.access.grants import Person
from waitreg.console.access.permission import lacking, rights
from waitreg.redrive.job_decision import Category

_OF_STATE: Final = {
    "open": (Kind.REDRIVE, Kind.ARCHIVE),
    Kind.REDRIVE.state: (Kind.REDRIVE,),
    Kind.ARCHIVE.state: (Kind.RESTORE,),
}


class Button(NamedTuple):
    """What can be done, its path with the values that go there, and the role that the person lacks for it, or ""."""

    label: str
    path: str
    missing: str = ""
    values: Sequence[tuple[str, str]] = ()


def buttons(
    person: Person,
    chosen: Sequence[tuple[str, str]],
    group: str | None = None,
    topic: str | None = None,
    state: str = "",
) -> list[Button]:
    """Return what can be done with the dead letters of some conditions, all of one group and topic if these are given.

    Args:
        person: who looks.
        chosen: the conditions, as values of an address.
        group: consumer group; None if there may be several: what the person may act on of them is decided later.
        topic: input topic, likewise.
        state: of all of them, if known: what is done to this state isn't offered, and to redrive again needs more.
    """
    found = []
    again = [("allow", Category.ALREADY_REDRIVEN.value)] if state == Kind.REDRIVE.state else []
    for kind in _OF_STATE.get(state, tuple(Kind)):
        needed = rights(kind, [name for _, name in again])
        several = group is None and all(person.pairs(right) for right in needed)
        missing = "" if several else lacking(person, needed, group, topic)
        found.append(Button(f"{kind.value.capitalize()} …", f"/{kind.value}/new", missing, [*chosen, *again]))
    return found
