"""What a random run does, drawn from its seed: the same on one commit."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from random import Random
from typing import Any

from tests.chaos.mixture import mean_bytes

SERVICES = ("processor", "sink", "sweeper")
LINK_FAULTS = ("cut", "refuse", "stall", "half_open", "slow", "young")
SERVERS = ("broker", "postgres")
MODES = ("eager", "deferred", "off")
ALL_DELAYS = ((), ("1s",), ("1s", "3s"))

# The load continues for some seconds behind the last fault that isn't aimed: what is done then must come to its end
# without that excuse. An aimed one (`AIMED_S`) begins after the load where the TTL is long.
LOAD_S = 18.0
FIRST_FAULT_S = 1.5
FIRST_DEATH_UNTIL_S = 5.0
LAST_FAULT_S = 14.0
# Around the time when what the first death abandoned expires: that is when sweepers export and sinks delete.
AIMED_S = (-1.5, 2.5)
MARGIN_S = 2.0
SKEW_ALLOWANCE_S = 0.5
BACKOFF_S = 0.1
# A processor that is frozen for longer loses its partitions.
SESSION_TIMEOUT_S = 3.0
# What one worker slot does per second on two busy cores: its calls take 25 ms at least.
MOST_PER_SLOT_S = 25
# A call that hangs keeps its slot to the end of all attempts; at most this share of the slots may hang.
MOST_HANGING = 0.2
LEAST_FOR_AUTO = 12
# A seventh of the records have one key, and are called one after the other.
MOST_IN_ORDER_MS = 100
BACKLOG = 400
UNLIMITED_BYTES = 67_108_864
# In some runs nothing is answered for this long before the first death: what dies then has much in flight.
FULL_SLOTS_S = 3.0

# What may be drawn, with its weight: name, kind of target.
_PROCESSOR_DIES = (
    ("kill", "processor", 4),
    ("kill", "group", 2),
    ("freeze", "processor", 3),
    ("terminate", "processor", 1),
)
ANY = (
    *_PROCESSOR_DIES,
    ("storm", "group", 2),
    ("hold_produce", "processor", 3),
    ("kill", "sink", 2),
    ("freeze", "sink", 2),
    ("terminate", "sink", 1),
    ("kill_jvm", "sink", 1),
    ("kill", "sweeper", 3),
    ("freeze", "sweeper", 3),
    ("terminate", "sweeper", 1),
    *((f"{name}_broker_link", "processor", 1) for name in LINK_FAULTS),
    *((f"{name}_{server}_link", kind, 1) for kind in ("sink", "sweeper") for server in SERVERS for name in LINK_FAULTS),
    ("kill", "everything", 2),
    ("kill", "broker", 2),
    ("stop", "broker", 1),
    ("freeze", "broker", 2),
    ("kill", "postgres", 2),
    ("freeze", "postgres", 2),
    ("end_sessions", "postgres", 2),
    ("answer_503", "downstream", 1),
    ("drop", "downstream", 1),
    ("hang", "downstream", 2),
    ("gone", "downstream", 2),
    ("add_partitions", "input", 2),
)
# Drawn by a generator of their own, so that a seed's faults stay what they were. "group" has no members meanwhile;
# "records" and "letters" are acted on alongside whatever runs.
OPERATORS = (
    ("rewind", "group", 3),
    ("commit_back", "group", 2),
    ("commit_forward", "group", 3),
    ("pass_retries", "group", 2),
    ("replay", "records", 3),
    ("delete_records", "records", 2),
    ("redrive", "letters", 3),
    ("archive", "letters", 1),
    ("purge", "letters", 2),
)


@dataclass(frozen=True, slots=True)
class Load:
    """What is published during the faults, and before.

    ``shares``: how many of a hundred records are of which kind; see `tests.chaos.mixture`. ``backlog`` records more are
    in the input topic before any service is started. With ``aborts`` another client's aborted transactions are between
    the records. With ``shuffled`` timestamps the producer sets them, in no order.
    """

    records: int
    rate_per_s: float
    shares: tuple[tuple[str, int], ...]
    input_partitions: int
    backlog: int
    aborts: bool
    shuffled: bool = False


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """One fault, or one action of an operator.

    ``target`` is a service ("processor-1"), a server ("broker"), "downstream", "input", "records" or "letters".
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
    """One run: ``counts`` of processes by service, drawn settings by their dotted names.

    ``modes``: a processor's registration mode at its first start, its second, and so on, again and again.
    ``latencies`` and ``failures`` are what the downstream does, by shares, when no fault hits it.
    """

    seed: int
    counts: Mapping[str, int]
    load: Load
    settings: Mapping[str, Any]
    modes: tuple[str, ...]
    latencies: str
    failures: str
    faults: tuple[PlannedFault, ...]

    def __str__(self) -> str:
        """Return it for people; on one commit the same seed gives the same text."""
        drawn = {name: value for name, value in asdict(self).items() if name != "faults"}
        return "\n".join([textwrap.fill(str(drawn), 120, subsequent_indent="  "), *map(str, self.faults)])

    def names_of(self, *services: str) -> list[str]:
        """Return the names of the services' processes: "processor-1", "processor-2", ..."""
        return [f"{service}-{number}" for service in services for number in range(1, self.counts[service] + 1)]


def schedule_of(seed: int) -> Schedule:
    """Return the run of a seed."""
    random = Random(f"chaos/{seed}")
    counts = {"processor": random.randint(1, 3), "sink": random.choice((1, 1, 2)), "sweeper": random.choice((1, 2))}
    modes = random.choice(((random.choice(MODES),), (random.choice(MODES),), tuple(random.sample(MODES, 2))))
    settings = _settings(random, modes)
    load = _load(random, settings, counts["processor"])
    latencies, failures = _downstream(random, load, settings, counts["processor"])
    full_slots = random.random() < 0.25
    # The first one abandons something that has to expire.
    earliest_s = FIRST_FAULT_S + (FULL_SLOTS_S if full_slots else 0.0)
    ttl_s = settings["processor.ttl_s"]
    death = _fault(random, _PROCESSOR_DIES, counts, ttl_s, (earliest_s, FIRST_DEATH_UNTIL_S))
    hang = PlannedFault(round(death.at_s - FULL_SLOTS_S, 1), "hang", "downstream", FULL_SLOTS_S + 0.5)
    exports_s = death.at_s + ttl_s + SKEW_ALLOWANCE_S
    faults = [hang, death] if full_slots else [death]
    for _ in range(random.randint(1, 5)):
        aimed = random.random() < 0.5
        within = (exports_s + AIMED_S[0], exports_s + AIMED_S[1]) if aimed else (FIRST_FAULT_S, LAST_FAULT_S)
        fault = _fault(random, ANY, counts, ttl_s, within)
        if fault.name == "hold_produce":
            # Without partitions a processor has nothing to produce, and in `off` it seldom has anything.
            if set(modes) == {"off"}:
                fault = replace(fault, name="freeze")
            elif load.input_partitions < counts["processor"]:
                fault = replace(fault, target="group")
        faults.append(fault)
    own = Random(f"chaos/{seed}/operators")
    within = (FIRST_FAULT_S, LAST_FAULT_S)
    faults += [_fault(own, OPERATORS, counts, ttl_s, within) for _ in range(own.choice((0, 0, 1, 2, 3)))]
    settings["processor.redeliver_to"] = own.choice(("group", "group", "origin"))
    load = replace(load, shuffled=own.random() < 0.5)
    in_order = tuple(sorted(faults, key=lambda fault: fault.at_s))
    return Schedule(seed, counts, load, settings, modes, latencies, failures, in_order)


def _settings(random: Random, modes: Sequence[str]) -> dict[str, Any]:
    """Draw settings within what is allowed."""
    slots = random.choice((3, 12, 50, 100, 100, 100))
    prefetch = slots * random.randint(1, 2)
    attempts, timeout_s = random.choice((1, 1, 2)), random.choice((1.0, 1.5, 2.0))
    protocol = random.choice(("classic", "classic", "consumer"))
    strategy = random.choice(("cooperative-sticky", "range", "roundrobin"))
    finds_level = slots >= LEAST_FOR_AUTO and random.random() < 0.3
    least_s = (1 + min(2 * slots + 16, prefetch) / slots) * (timeout_s * attempts + BACKOFF_S * (attempts - 1))
    # With fewer slots than the most, a record may wait for longer.
    ttl_s = math.ceil(least_s + SKEW_ALLOWANCE_S + MARGIN_S) + random.randint(1, 3) + 3.0 * finds_level
    drawn = {
        "wait.max_message_bytes": random.choice((8_192, 30_000, 150_000, 150_000)),
        "processor.max_in_flight": slots,
        "processor.prefetch_max": prefetch,
        # The first is the least that is allowed with the largest registrations.
        "processor.prefetch_max_bytes": random.choice((150_000, 600_000, UNLIMITED_BYTES)),
        "processor.handler_timeout_s": timeout_s,
        "processor.max_attempts": attempts,
        "processor.ttl_s": ttl_s,
        "processor.commit_interval_s": random.choice((0.1, 0.1, 0.2, 1.0)),
        "processor.group_protocol": protocol,
        # Under the protocol "consumer" the broker assigns, and any other strategy is refused.
        "processor.assignment_strategy": strategy if protocol == "classic" else "cooperative-sticky",
        "processor.expiry_policy": random.choice(("dlq", "dlq", "redeliver")),
        "processor.max_deliveries": random.randint(2, 3),
        "processor.http.discard_statuses": random.choice(((), (404,))),
        "processor.registration": modes[0],
        "processor.register_after_s": random.choice((0.1, 0.5, 0.7)),
        "processor.uncommitted_max": random.choice((220, 1_000, 20_000)),
        "processor.retry.delays": random.choice(ALL_DELAYS),
        "wait.partitions": random.randint(1, 5),
        "sink.max_batch_records": random.choice((300, 2_000, 250_000)),
        "sink.max_batch_bytes": random.choice((1_048_576, UNLIMITED_BYTES)),
        "sweeper.chunk_rows": random.choice((1, 3, 20, 5000)),
        "sweeper.chunk_bytes": random.choice((20_000, 8_388_608)),
        "sweeper.max_tail_records": random.choice((200, 2_000_000, 2_000_000)),
    }
    if finds_level:
        drawn |= {"processor.max_in_flight_min": 3 * slots // 4, "processor.max_in_flight_max": slots}
        drawn |= {"processor.max_in_flight": "auto"}
    if random.random() < 0.25:
        drawn |= {"processor.cancel_blocked": True, "processor.blocked_after_s": random.choice((0.5, 0.8))}
    if "off" in modes and random.random() < 0.7:
        # Processes in other modes get settings of their own. By partition, all calls of one are one after the other:
        # too slow for this load.
        drawn |= {"processor.registration": "off", "processor.ordering": "key"}
        drawn |= {"processor.retry.allow_reordering": True}
    return drawn


def _load(random: Random, settings: Mapping[str, Any], processors: int) -> Load:
    shares = {
        "binary": random.randint(5, 25),
        "hostile": random.randint(5, 25),
        "empty": random.randint(1, 5),
        "null": random.randint(1, 5),
        "huge": random.randint(0, 2),
        "too_large": random.randint(0, 1),
        "bulky": random.choice((0, 0, 30)),
    }
    weighed = tuple({"orders": 100 - sum(shares.values()), **shares}.items())
    rate = min(random.randint(90, 150), MOST_PER_SLOT_S * _busy_at_once(settings, weighed) * processors)
    return Load(
        records=int(rate * LOAD_S),
        rate_per_s=float(rate),
        shares=weighed,
        input_partitions=random.choice((1, 3, 4, 6)),
        backlog=random.choice((0, 0, 0, BACKLOG)),
        aborts=random.random() < 0.25,
    )


def _busy_at_once(settings: Mapping[str, Any], shares: Sequence[tuple[str, int]]) -> int:
    """Return how many handlers of a processor the bounds let run at once."""
    fitting = settings["processor.prefetch_max_bytes"] / mean_bytes(shares, settings["wait.max_message_bytes"])
    slots = settings.get("processor.max_in_flight_max", settings["processor.max_in_flight"])
    return max(1, min(slots, int(fitting)))


def _downstream(random: Random, load: Load, settings: Mapping[str, Any], processors: int) -> tuple[str, str]:
    """Keep a good part of the slots busy: what is in flight when a process dies is what has to expire."""
    busy, timeout_s = random.uniform(0.4, 0.8), settings["processor.handler_timeout_s"]
    at_once = _busy_at_once(settings, load.shares) * processors
    mean_ms = int(1000 * min(busy * at_once / load.rate_per_s, timeout_s / 2))
    if "processor.ordering" in settings:
        mean_ms = min(mean_ms, MOST_IN_ORDER_MS)
    hanging = 0.01 * load.rate_per_s * timeout_s * settings["processor.max_attempts"]
    slowest = "1%:hang" if hanging <= MOST_HANGING * at_once else f"1%:{mean_ms}ms"
    latencies = random.choice(
        (
            f"100%:{mean_ms}ms",
            f"90%:{mean_ms // 2}ms-{mean_ms * 5 // 4}ms,10%:{3 * mean_ms // 2}ms-{2 * mean_ms}ms",
            f"50%:{mean_ms // 2}ms,49%:{mean_ms}ms-{2 * mean_ms}ms,{slowest}",
        )
    )
    return latencies, random.choice(("", "1%:503", "1%:400,0.5%:drop", "5%:404,20%:400"))


def _fault(
    random: Random,
    drawn_from: Sequence[tuple[str, str, int]],
    counts: Mapping[str, int],
    ttl_s: float,
    within_s: tuple[float, float],
) -> PlannedFault:
    name, kind, _ = random.choices(drawn_from, [weight for *_, weight in drawn_from])[0]
    # After the load the downstream is idle and processors produce nothing, so that no service would feel the fault.
    during_load = kind == "downstream" or name == "hold_produce"
    at_s = random.uniform(*((FIRST_FAULT_S, LAST_FAULT_S) if during_load else within_s))
    share = random.random()
    # Always drawn, so that what follows doesn't depend on the kind.
    numbers = {service: random.randint(1, counts[service]) for service in SERVICES}
    target = f"{kind}-{numbers[kind]}" if kind in numbers else kind
    least_s, most_s = _duration(name, kind, ttl_s)
    return PlannedFault(round(at_s, 1), name, target, round(least_s + (most_s - least_s) * share, 1))


def _duration(name: str, kind: str, ttl_s: float) -> tuple[float, float]:
    """Return the least and the longest time that a fault lasts, s."""
    if name == "freeze" and kind == "processor":
        return SESSION_TIMEOUT_S + 1.0, SESSION_TIMEOUT_S + 7.0
    if name in ("freeze", "kill") and kind == "sink":
        # So long that the rows of its tables fall due, and have been resolved meanwhile.
        return 2.0, ttl_s + 4.0
    if name == "freeze":
        return 2.0, 9.0
    if name in ("kill", "kill_jvm", "terminate", "stop"):
        return 0.2, 3.0
    if name in ("end_sessions", "add_partitions") or kind in ("records", "letters"):
        return 0.0, 0.0
    if kind == "group" and name != "storm":
        # So long that records come which the group hasn't consumed.
        return 0.5, 3.0
    return 2.0, 7.0
