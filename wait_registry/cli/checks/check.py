"""What one check is: its name for scripts, what it looks at, whom it concerns and what must be sound before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from wait_registry.diagnosis import Diagnosis

if TYPE_CHECKING:
    from wait_registry.settings.root import Settings

Look = Callable[["Settings"], Iterator[Diagnosis]]
# The services, and what is looked at where a Kafka Connect source exports in the sweeper's place.
Concerned = Literal["processor", "sink", "sweeper", "connect"]

EVERY: Final[frozenset[Concerned]] = frozenset({"processor", "sink", "sweeper", "connect"})
PROCESSOR: Final[frozenset[Concerned]] = frozenset({"processor"})
SINK: Final[frozenset[Concerned]] = frozenset({"sink"})
SWEEPER: Final[frozenset[Concerned]] = frozenset({"sweeper"})
EXPORTING: Final[frozenset[Concerned]] = SWEEPER | {"connect"}
# Those that run on Spark, and those that have to do with Postgres.
SPARK: Final[frozenset[Concerned]] = SINK | SWEEPER
VIEWING: Final[frozenset[Concerned]] = SINK | EXPORTING


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that `waitreg doctor` looks at; ``look`` only reads.

    ``id`` is stable: scripts know the check by it. ``subject`` is what people read. ``services`` are those that it
    concerns. ``needs`` are ids (or their beginnings, ``topic.wait``) of lines that must not be errors, or this check
    could only say the same again. ``fix`` is what to do when ``look`` raises.
    """

    id: str
    subject: str
    look: Look
    services: frozenset[Concerned] = EVERY
    needs: tuple[str, ...] = ()
    fix: str = ""
