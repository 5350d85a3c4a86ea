"""The processor: topics, handler and limits."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field, SecretStr, field_validator

from wait_registry.diagnosis import Diagnosis, error
from wait_registry.outage import backoff_s
from wait_registry.records.delays import MAX_DELAY_S, parse_delay
from wait_registry.records.wait_record import RegistrationMode
from wait_registry.settings import Section
from wait_registry.settings.grpc import GrpcHandlerSettings
from wait_registry.settings.http import HttpHandlerSettings
from wait_registry.settings.routes import Route

AUTO: Final = "auto"
_Slots = Annotated[int, Field(ge=1, le=100_000)]

# As good as never, and the expiry is still a date that every client can write.
TEN_YEARS_S = 315_360_000


class ExpiryPolicy(StrEnum):
    """What the sweeper does with an expired registration of this group."""

    DLQ = "dlq"
    REDELIVER = "redeliver"


class RedeliverTo(StrEnum):
    """Which topic the sweeper delivers an expired record of this group to."""

    GROUP = "group"
    ORIGIN = "origin"


class GroupProtocol(StrEnum):
    """Kafka's group protocols: ``consumer`` is KIP-848."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


class AssignmentStrategy(StrEnum):
    """Assignors of the classic protocol; the first is cooperative, the others are eager."""

    COOPERATIVE_STICKY = "cooperative-sticky"
    RANGE = "range"
    ROUNDROBIN = "roundrobin"


class SourceKind(StrEnum):
    """Which kind of group consumes; ``share`` is KIP-932."""

    GROUP = "group"
    SHARE = "share"


class Ordering(StrEnum):
    """Which records of a partition are handled one after the other."""

    UNORDERED = "unordered"
    KEY = "key"
    PARTITION = "partition"


class Oversized(StrEnum):
    """What becomes of a record that is too large to be registered before its call."""

    DEAD_LETTER = "dead_letter"
    HOLD = "hold"


class RetrySettings(Section):
    """Retry topics: where a record goes whose attempts in process have failed."""

    delays: tuple[str, ...] = ()
    """delays of the retry topics, ascending, such as 10s, 1m and 10m"""
    allow_reordering: bool = False
    """with 'ordering': allow retry topics, which give up order"""

    @field_validator("delays")
    @classmethod
    def _ascending(cls, delays: tuple[str, ...]) -> tuple[str, ...]:
        seconds = [parse_delay(delay) for delay in delays]
        if seconds != sorted(set(seconds)):
            raise ValueError(f"saw {', '.join(delays)}, expected each delay to be longer than the one before")
        return delays

    @property
    def delays_s(self) -> tuple[int, ...]:
        """The delays, s."""
        return tuple(map(parse_delay, self.delays))


class SchemaRegistrySettings(Section):
    """The schema registry of a typed handler: Avro always needs it, Protobuf if values begin with a schema's ID.

    The console and `waitreg dlq show` show values by its schemas.
    """

    url: str = ""
    """http(s)://host:port; several with commas are tried in turn"""
    username: str | None = None
    """user of the schema registry (basic authentication)"""
    password: SecretStr | None = None
    """password of that user"""


class ProcessorSettings(Section):
    """One processor process; start as many of a group as the input has partitions."""

    group: str = ""
    """consumer group; needed by the processor"""
    topics: tuple[str, ...] = ()
    """input topics; needed by the processor"""
    handler: str = ""
    """'module:name' of a handler, http(s) URL to POST to, or grpc(s)://host:port"""
    routes: tuple[Route, ...] = ()
    """handlers of some records, by topic or header: 'match', 'handler', 'max_in_flight' if limited"""
    instance: str = ""
    """name of this process in wait records; by default host name and start time"""
    max_in_flight: Literal["auto"] | _Slots = 50
    """handler calls at once, at most (N); 'auto' follows what the called service can take"""
    max_in_flight_min: int = Field(5, ge=1, le=100_000)
    """with 'auto': lower bound of N"""
    max_in_flight_max: int = Field(200, ge=1, le=100_000)
    """with 'auto': upper bound of N"""
    handler_timeout_s: float = Field(30.0, gt=0)
    """limit of one attempt, s"""
    blocked_after_s: float = Field(60.0, gt=0)
    """a call that runs for longer, all attempts included, blocks its worker slot, s"""
    cancel_blocked: bool = False
    """cancel the oldest call if nine worker slots in ten are blocked, as if its last attempt had failed"""
    max_attempts: int = Field(3, ge=1, le=100)
    """attempts per delivery; then the record goes to a retry or dead letter topic"""
    backoff_initial_s: float = Field(0.2, ge=0)
    """upper bound of the first pause between attempts, s"""
    backoff_max_s: float = Field(10.0, ge=0)
    """upper bound of any pause between attempts, s"""
    ttl_s: float = Field(600.0, gt=0, le=TEN_YEARS_S)
    """time from registration to expiry, s"""
    margin_s: float = Field(10.0, gt=0)
    """reserve between the end of the last attempt and the expiry, s"""
    registration: RegistrationMode = RegistrationMode.EAGER
    """when a record is registered: before its call (eager), if it is slow (deferred), or never (off)"""
    register_after_s: float = Field(0.5, gt=0, le=10)
    """in 'deferred': from polling a record to its registration, s"""
    ordering: Ordering = Ordering.UNORDERED
    """which records are handled in order: none, those of a key or of a partition"""
    oversized: Oversized = Oversized.DEAD_LETTER
    """a record too large to register before its call: dead-letter it, or call it while its offset waits"""
    uncommitted_max: int = Field(20_000, ge=2, le=1_000_000)
    """records of a partition that are polled and not committed, at most"""
    prefetch_max: int = Field(20_000, ge=1)
    """records polled and not settled, at most"""
    prefetch_max_bytes: int = Field(67_108_864, ge=1)
    """size of those records, in keys, values and headers, bytes"""
    linger_ms: float = Field(1.0, ge=0, le=1000)
    """linger.ms of the producer; 5 raises throughput and latency, ms"""
    gather_ms: float = Field(5.0, ge=0, le=20)
    """records that trickle in are taken together after this time: less CPU, more latency; 0 takes each at once, ms"""
    commit_interval_s: float = Field(0.5, gt=0, le=60)
    """pause between offset commits, s"""
    drain_timeout_s: float = Field(30.0, ge=0)
    """how long records may be finished after SIGTERM, s"""
    flush_timeout_s: float = Field(10.0, gt=0, le=120)
    """how long a rebalance or a shutdown waits for calls and writes, s"""
    delay_s: float = Field(0, ge=0, le=MAX_DELAY_S)
    """how long after its timestamp a record of the input topics is due, s"""
    retry: RetrySettings = RetrySettings()
    """the retry topics"""
    expiry_policy: ExpiryPolicy = ExpiryPolicy.DLQ
    """what becomes of an expired record: dead letter, or delivery to the group again"""
    max_deliveries: int = Field(3, ge=1, le=1000)
    """with 'redeliver': deliveries before the dead letter topic; retries don't count"""
    redeliver_to: RedeliverTo = RedeliverTo.GROUP
    """with 'redeliver': 'group' is the topic {topic}.{group}.redeliver, 'origin' the input topic (not a compacted one),
    whose records may then say that they are deliveries of earlier ones
    """
    source: SourceKind = SourceKind.GROUP
    """where records come from: a consumer group, or (experimental) a share group"""
    group_protocol: GroupProtocol = GroupProtocol.CLASSIC
    """group.protocol; 'consumer' is KIP-848"""
    assignment_strategy: AssignmentStrategy = AssignmentStrategy.COOPERATIVE_STICKY
    """partition.assignment.strategy of the classic protocol"""
    http: HttpHandlerSettings = HttpHandlerSettings()
    """the HTTP handler"""
    grpc: GrpcHandlerSettings = GrpcHandlerSettings()
    """the gRPC handler"""
    schema_registry: SchemaRegistrySettings = SchemaRegistrySettings()
    """the schema registry of a typed handler"""

    @property
    def ordered(self) -> bool:
        """Whether records wait for earlier ones."""
        return self.ordering is not Ordering.UNORDERED

    @property
    def handler_names(self) -> list[str]:
        """The handlers of all routes and ``handler``, each once."""
        names = (*(route.handler for route in self.routes), self.handler)
        return list(dict.fromkeys(filter(None, names)))

    @property
    def awaits_threads(self) -> bool:
        """Whether a call in a thread lasts until its function returns, because a lane or a route counts it."""
        return self.ordered or bool(self.routes)

    @property
    def least_in_flight(self) -> int:
        """How many worker slots there are at least."""
        return self.max_in_flight_min if self.max_in_flight == AUTO else self.max_in_flight

    @property
    def most_in_flight(self) -> int:
        """How many worker slots there are at most."""
        return self.max_in_flight_max if self.max_in_flight == AUTO else self.max_in_flight

    @property
    def longest_backoffs_s(self) -> float:
        """The sum of the longest pauses between all attempts, s."""
        failures = range(1, self.max_attempts)
        return sum(backoff_s(failure, self.backoff_initial_s, self.backoff_max_s) for failure in failures)


def ordering_problems(processor: ProcessorSettings) -> Iterator[Diagnosis]:
    """Yield the settings that give up the order which is asked for."""
    if not processor.ordered:
        return
    ordering, registration, retry = processor.ordering.value, processor.registration, processor.retry
    if registration is not RegistrationMode.OFF:
        yield error(
            f"processor.ordering is {ordering}, but in processor.registration = {registration.value} a commit may "
            "pass an unsettled record, so after a crash later records overtake it. Set processor.registration=off"
        )
    if retry.delays and not retry.allow_reordering:
        yield error(
            f"processor.ordering is {ordering}, but a record in a retry topic is overtaken by later ones. Remove "
            "processor.retry.delays, or set processor.retry.allow_reordering=true if that is acceptable"
        )


def share_problems(processor: ProcessorSettings) -> Iterator[Diagnosis]:
    """Yield the settings that rely on offsets, which a share group doesn't have."""
    if processor.source is not SourceKind.SHARE:
        return
    not_due = "a record that isn't due can't be put back"
    refused = (
        ("registration", processor.registration.value, "off", "the broker keeps a record until it is acknowledged"),
        ("ordering", processor.ordering.value, "unordered", "the broker leases records of one key to several members"),
        ("retry.delays", ", ".join(processor.retry.delays) or "[]", "[]", not_due),
        ("delay_s", f"{processor.delay_s:g}", "0", not_due),
        ("group_protocol", processor.group_protocol.value, "classic", "a share group has a protocol of its own"),
    )
    for name, value, allowed, why in refused:
        if value != allowed:
            yield error(f"processor.{name} is {value}, but with processor.source = share {why}. Set it to {allowed}")
