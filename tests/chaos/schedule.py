"""What a random run does, as plain data that prints itself: the load, the settings, and the faults with their times."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass

SERVICES = ("processor", "sink", "sweeper")


@dataclass(frozen=True, slots=True)
class LoadOfRun:
    """What is published while the faults are done, and before.

    ``shares``: how many of a hundred records are of which kind; see `tests.chaos.load`. ``backlog`` records more are
    in the input topic before any service is started. With ``aborts`` somebody else's aborted transactions stand between
    the records.
    """

    records: int
    rate_per_s: float
    shares: tuple[tuple[str, int], ...]
    input_partitions: int
    backlog: int
    aborts: bool


@dataclass(frozen=True, slots=True)
class SettingsOfRun:
    """What the services of a run are told, within what is allowed; names are those of the settings.

    ``registration_bytes`` is how large a wait record may be, ``prefetch_max_bytes`` what a processor may hold.
    """

    processors: int
    sinks: int
    sweepers: int
    registration_bytes: int
    max_in_flight: int
    prefetch_max: int
    prefetch_max_bytes: int
    handler_timeout_s: float
    max_attempts: int
    ttl_s: float
    commit_interval_s: float
    group_protocol: str
    assignment_strategy: str
    expiry_policy: str
    max_deliveries: int
    discard_statuses: tuple[int, ...]
    wait_partitions: int
    max_batch_records: int
    max_batch_bytes: int
    chunk_rows: int
    chunk_bytes: int
    max_tail_records: int


@dataclass(frozen=True, slots=True)
class Mood:
    """How the downstream behaves when nothing is wrong with it: shares of latencies, shares of failures."""

    mixture: str
    failures: str


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """One fault: ``target`` is a service ("processor-1"), a server ("broker"), "downstream" or "input".

    "group" is all processors (of a storm: those that join and leave), "everything" all services and both servers.
    """

    at_s: float
    name: str
    target: str
    for_s: float

    def __str__(self) -> str:
        return f"at {self.at_s:4.1f} s {self.name} of {self.target} for {self.for_s:.1f} s"


@dataclass(frozen=True, slots=True)
class Schedule:
    """One run, wholly decided by its seed."""

    seed: int
    load: LoadOfRun
    settings: SettingsOfRun
    mood: Mood
    faults: tuple[PlannedFault, ...]

    def lines(self) -> Iterator[str]:
        """Tell it for people; on one commit the same seed gives the same lines."""
        for part in (self.load, self.settings, self.mood):
            told = ", ".join(f"{name} {value}" for name, value in asdict(part).items())
            yield from textwrap.wrap(f"seed {self.seed}: {told}", 120, subsequent_indent="  ")
        yield from (f"  {fault}" for fault in self.faults)

    def names_of(self, service: str) -> list[str]:
        """Return the names of a service's processes: "processor-1", "processor-2", ..."""
        count = getattr(self.settings, f"{service}s")
        return [f"{service}-{number}" for number in range(1, count + 1)]
