"""From a seed to a schedule: pure, and the same on one commit.

A draw that is added behind the last one leaves the schedules of old seeds as they are. Any other change gives all seeds
new ones: what was said of a seed before counts for the commit it was said of.
"""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

from tests.chaos.mixture import mean_bytes
from tests.chaos.schedule import LoadOfRun, Mood, PlannedFault, Schedule, SettingsOfRun

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
# What one slot does a second alongside everything else that two cores have to do: its calls are of some 25 ms at least.
MOST_PER_SLOT_S = 25
# A call that hangs keeps its slot to the end of all tries; so much of the slots may be kept so.
MOST_HANGING = 0.2
BACKLOG = 400
UNLIMITED_BYTES = 67_108_864
# For so long nothing is answered before the first death, in some runs: what dies then has much in flight.
FULL_HANDS_S = 3.0

LINK_FAULTS = ("cut", "refuse", "stall", "half_open", "slow", "young")
HOLD_PRODUCE = "hold_produce"
DOWNSTREAM_FAULTS = ("answer_503", "drop", "hang", "gone")

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
    (HOLD_PRODUCE, "processor", 3),
    ("kill", "sink", 2),
    ("freeze", "sink", 2),
    ("terminate", "sink", 1),
    ("kill_jvm", "sink", 1),
    ("kill", "sweeper", 3),
    ("freeze", "sweeper", 3),
    ("terminate", "sweeper", 1),
    *((f"{name}_broker_link", "processor", 1) for name in LINK_FAULTS),
    *((f"{name}_broker_link", "sink", 1) for name in LINK_FAULTS),
    *((f"{name}_postgres_link", "sink", 1) for name in LINK_FAULTS),
    *((f"{name}_broker_link", "sweeper", 1) for name in LINK_FAULTS),
    *((f"{name}_postgres_link", "sweeper", 1) for name in LINK_FAULTS),
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


def schedule_of(seed: int) -> Schedule:
    """Return the run of a seed."""
    random = Random(f"chaos/{seed}")
    settings = _settings(random)
    load = _load(random, settings)
    mood = _mood(random, load, settings)
    count = random.randint(2, 6)
    full_hands = random.random() < 0.25
    # The first one leaves something behind that has to expire.
    earliest_s = FIRST_FAULT_S + (FULL_HANDS_S if full_hands else 0.0)
    death = _fault(random, _PROCESSOR_DIES, settings, (earliest_s, FIRST_DEATH_UNTIL_S))
    exports_s = death.at_s + settings.ttl_s + SKEW_ALLOWANCE_S
    faults = [*([_nothing_is_answered_before(death)] if full_hands else []), death]
    for _ in range(count - 1):
        aimed = random.random() < 0.5
        within = (exports_s + AIMED_S[0], exports_s + AIMED_S[1]) if aimed else (FIRST_FAULT_S, LAST_FAULT_S)
        faults.append(_of_who_works(_fault(random, ANY, settings, within), load, settings))
    return Schedule(seed, load, settings, mood, tuple(sorted(faults, key=lambda fault: fault.at_s)))


def _load(random: Random, settings: SettingsOfRun) -> LoadOfRun:
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
    most_per_s = MOST_PER_SLOT_S * _busy_at_once(settings, weighed) * settings.processors
    rate = min(random.randint(90, 150), most_per_s)
    return LoadOfRun(
        records=int(rate * LOAD_S),
        rate_per_s=float(rate),
        shares=weighed,
        input_partitions=random.choice((1, 3, 4, 6)),
        backlog=random.choice((0, 0, 0, BACKLOG)),
        aborts=random.random() < 0.25,
    )


def _settings(random: Random) -> SettingsOfRun:
    registration = random.choice((8_192, 30_000, 150_000, 150_000))
    slots = random.choice((3, 12, 50, 100, 100, 100))
    prefetch = slots * random.randint(1, 2)
    tries = random.choice((1, 1, 2))
    timeout_s = random.choice((1.0, 1.5, 2.0))
    protocol = random.choice(("classic", "classic", "consumer"))
    strategy = random.choice(("cooperative-sticky", "range", "roundrobin"))
    least_s = (1 + min(2 * slots + 16, prefetch) / slots) * (timeout_s * tries + BACKOFF_S * (tries - 1))
    ttl_s = math.ceil(least_s + SKEW_ALLOWANCE_S + MARGIN_S) + random.randint(1, 3)
    return SettingsOfRun(
        processors=random.randint(1, 3),
        sinks=random.choice((1, 1, 2)),
        sweepers=random.choice((1, 2)),
        registration_bytes=registration,
        max_in_flight=slots,
        prefetch_max=prefetch,
        # The first is the least that is allowed with the largest registrations.
        prefetch_max_bytes=random.choice((150_000, 600_000, UNLIMITED_BYTES)),
        handler_timeout_s=timeout_s,
        max_attempts=tries,
        ttl_s=float(ttl_s),
        commit_interval_s=random.choice((0.1, 0.1, 0.2, 1.0)),
        group_protocol=protocol,
        # Under the protocol "consumer" the broker assigns, and any other strategy is refused.
        assignment_strategy=strategy if protocol == "classic" else "cooperative-sticky",
        expiry_policy=random.choice(("dlq", "dlq", "redeliver")),
        max_deliveries=random.randint(2, 3),
        discard_statuses=random.choice(((), (404,))),
        wait_partitions=random.randint(1, 5),
        max_batch_records=random.choice((300, 2_000, 250_000)),
        max_batch_bytes=random.choice((1_048_576, UNLIMITED_BYTES)),
        chunk_rows=random.choice((1, 3, 20, 5000)),
        chunk_bytes=random.choice((20_000, 8_388_608)),
        max_tail_records=random.choice((200, 2_000_000, 2_000_000)),
    )


def _busy_at_once(settings: SettingsOfRun, shares: tuple[tuple[str, int], ...]) -> int:
    """Return how many handlers of a processor the bounds let run at once."""
    fitting = settings.prefetch_max_bytes / mean_bytes(shares, settings.registration_bytes)
    return max(1, min(settings.max_in_flight, int(fitting)))


def _mood(random: Random, load: LoadOfRun, settings: SettingsOfRun) -> Mood:
    """Keep a good part of the slots busy: what is in flight when a process dies is what has to expire."""
    busy = random.uniform(0.4, 0.8)
    at_once = _busy_at_once(settings, load.shares) * settings.processors
    mean_s = busy * at_once / load.rate_per_s
    mean_ms = int(1000 * min(mean_s, settings.handler_timeout_s / 2))
    hanging = 0.01 * load.rate_per_s * settings.handler_timeout_s * settings.max_attempts
    latencies = random.choice(
        (
            f"100%:{mean_ms}ms",
            f"90%:{mean_ms // 2}ms-{mean_ms * 5 // 4}ms,10%:{3 * mean_ms // 2}ms-{2 * mean_ms}ms",
            f"50%:{mean_ms // 2}ms,49%:{mean_ms}ms-{2 * mean_ms}ms"
            + (",1%:hang" if hanging <= MOST_HANGING * at_once else f",1%:{mean_ms}ms"),
        )
    )
    return Mood(latencies, random.choice(("", "1%:503", "1%:400,0.5%:drop", "5%:404,20%:400")))


def _nothing_is_answered_before(death: PlannedFault) -> PlannedFault:
    return PlannedFault(round(death.at_s - FULL_HANDS_S, 1), "hang", "downstream", FULL_HANDS_S + 0.5)


def _fault(
    random: Random, drawn_from: tuple[tuple[str, str, int], ...], settings: SettingsOfRun, within_s: tuple[float, float]
) -> PlannedFault:
    name, kind, _ = random.choices(drawn_from, [weight for *_, weight in drawn_from])[0]
    # Behind the load nobody calls the downstream or produces: nobody would feel the fault.
    during_load = kind == "downstream" or name == HOLD_PRODUCE
    at_s = random.uniform(*((FIRST_FAULT_S, LAST_FAULT_S) if during_load else within_s))
    share = random.random()
    # Always drawn, so that what follows doesn't depend on the kind.
    numbers = {
        "processor": random.randint(1, settings.processors),
        "sink": random.randint(1, settings.sinks),
        "sweeper": random.randint(1, settings.sweepers),
    }
    target = f"{kind}-{numbers[kind]}" if kind in numbers else kind
    least_s, most_s = _duration(name, kind, settings.ttl_s)
    return PlannedFault(round(at_s, 1), name, target, round(least_s + (most_s - least_s) * share, 1))


def _of_who_works(fault: PlannedFault, load: LoadOfRun, settings: SettingsOfRun) -> PlannedFault:
    """Have the fault of whoever produces hit all of them where some have no partition, and nothing to produce."""
    some_idle = fault.name == HOLD_PRODUCE and load.input_partitions < settings.processors
    return replace(fault, target="group") if some_idle else fault


def _duration(name: str, kind: str, ttl_s: float) -> tuple[float, float]:
    """Return the least and the longest time that a fault lasts, s."""
    if name == "freeze" and kind == "processor":
        return SESSION_TIMEOUT_S + 1.0, SESSION_TIMEOUT_S + 7.0
    if name in ("freeze", "kill") and kind == "sink":
        # So long that what it shows as standing falls due, and has been resolved meanwhile.
        return 2.0, ttl_s + 4.0
    if name == "freeze":
        return 2.0, 9.0
    if name in ("kill", "kill_jvm", "terminate", "stop"):
        return 0.2, 3.0
    if name in ("end_sessions", "add_partitions"):
        return 0.0, 0.0
    return 2.0, 7.0
