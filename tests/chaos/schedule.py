"""What a random run does, as plain data that prints itself: the load, the settings, and the faults with their times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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

    ``registration_bytes`` is how large a wait record may be, ``look_ahead_bytes`` what a processor may hold.
    """

    processors: int
    sinks: int
    sweepers: int
    registration_bytes: int
    max_in_flight: int
    prefetch_max: int
    look_ahead_bytes: int
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
        load, settings = self.load, self.settings
        shares = ", ".join(f"{share} % {kind}" for kind, share in load.shares)
        aborts = "aborted transactions between them" if load.aborts else "no transactions"
        yield f"seed {self.seed}: {load.records} records at {load.rate_per_s:g}/s, {load.backlog} before; {aborts}"
        yield f"  {shares}"
        yield (
            f"  {settings.processors} processors, {settings.sinks} sinks, {settings.sweepers} sweepers; "
            f"{load.input_partitions} input partitions, {settings.wait_partitions} wait partitions"
        )
        yield (
            f"  N {settings.max_in_flight}, look-ahead {settings.prefetch_max}, {settings.max_attempts} tries of "
            f"{settings.handler_timeout_s:g} s, TTL {settings.ttl_s:g} s, commits each {settings.commit_interval_s:g} s"
        )
        yield (
            f"  group protocol {settings.group_protocol}, {settings.assignment_strategy}; {settings.expiry_policy} "
            f"(at most {settings.max_deliveries} deliveries)"
        )
        yield (
            f"  at most: registrations of {settings.registration_bytes} bytes, look-ahead {settings.look_ahead_bytes}; "
            f"batches {settings.max_batch_records} records, {settings.max_batch_bytes} bytes"
        )
        yield (
            f"  at most: chunks {settings.chunk_rows} rows, {settings.chunk_bytes} bytes; "
            f"tails {settings.max_tail_records} records"
        )
        discarded = ", ".join(map(str, settings.discard_statuses)) or "no status"
        yield f"  downstream {self.mood.mixture}; fails {self.mood.failures or 'never'}; {discarded} discards"
        for fault in self.faults:
            yield f"  {fault}"

    def names_of(self, service: str) -> list[str]:
        """Return the names of a service's processes: "processor-1", "processor-2", ..."""
        count = {
            "processor": self.settings.processors,
            "sink": self.settings.sinks,
            "sweeper": self.settings.sweepers,
        }[service]
        return [f"{service}-{number}" for number in range(1, count + 1)]
