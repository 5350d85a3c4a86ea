"""How places and times are said."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.chaos.history.entries import Place, Republished, WaitEntry
from wait_registry.demo.manifest import Coordinates


def place(where: Coordinates) -> str:
    """Return topic/partition@offset."""
    return f"{where[0]}/{where[1]}@{where[2]}"


def registration(where: Place) -> str:
    """Return the name of a registration."""
    return f"wait {where[0]}@{where[1]}"


def entry(one: WaitEntry) -> str:
    """Return what an entry of the wait topic is and where."""
    what = "registration" if one.registration is not None else f"tombstone {one.outcome}".rstrip()
    return f"{what if not one.unreadable else 'unreadable record'} at {registration(one.place)} ({time(one.append_ms)})"


def letter(one: Republished) -> str:
    """Return what a dead letter or redelivery is and where."""
    what = f"dead letter {one.reason}" if one.reason else "redelivery"
    return f"{what} at {place(one.place)}"


def time(moment_ms: int) -> str:
    """Return a time of day, UTC, with milliseconds."""
    return datetime.fromtimestamp(moment_ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
