"""What one check is: its name for scripts, what it looks at, whom it concerns and what must be sound before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from waitreg.commands.check_line import CheckLine

if TYPE_CHECKING:
    from wait_registry.settings.relations import Service
    from wait_registry.settings.root import Settings

Look = Callable[["Settings"], Iterator[CheckLine]]

EVERY: Final[frozenset[Service]] = frozenset({"processor", "sink", "sweeper"})
PROCESSOR: Final[frozenset[Service]] = frozenset({"processor"})
SINK: Final[frozenset[Service]] = frozenset({"sink"})
SWEEPER: Final[frozenset[Service]] = frozenset({"sweeper"})
VIEWING: Final[frozenset[Service]] = SINK | SWEEPER


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that `waitreg doctor` looks at; ``look`` only reads.

    ``id`` is stable: scripts know the check by it. ``subject`` is what people read. ``services`` are those that it
    concerns. ``needs`` are ids (or their beginnings, ``topic.wait``) of lines that must not be errors, or this check
    could only say the same again. ``mend`` is what to do when ``look`` raises.
    """

    id: str
    subject: str
    look: Look
    services: frozenset[Service] = EVERY
    needs: tuple[str, ...] = ()
    mend: str = ""
