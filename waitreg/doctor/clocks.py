"""Compare clocks of this host, Postgres and the broker: one writes when a record expires, another judges it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Final

from confluent_kafka import TopicPartition
from confluent_kafka.admin import OffsetSpec

from wait_registry.diagnosis import Diagnosis, error, ok, warning
from wait_registry.kafka.clients import Admin, admin
from wait_registry.kafka.cluster import describe_topic
from wait_registry.kafka.requests import answer, persistently, timeout_of
from wait_registry.settings.tree import Settings

FIX: Final = "synchronize the clocks (NTP: chrony or systemd-timesyncd) of this host and that server"


def broker_clock(settings: Settings) -> Iterator[Diagnosis]:
    """Compare with the newest record's append time, which shows a broker that is ahead, never one that is behind."""
    client = admin(settings.kafka)
    # A leader of a topic that was just created may not know yet that it leads it.
    newest_ms = persistently(client, partial(_newest_ms, client, settings.wait.topic))
    yield broker_line(newest_ms, time.time_ns() // 1_000_000, settings)


def _newest_ms(client: Admin, topic: str) -> int:
    partitions = range(describe_topic(client, topic).partitions)
    asked = {TopicPartition(topic, number): OffsetSpec.max_timestamp() for number in partitions}
    futures = client.list_offsets(asked, request_timeout=timeout_of(client))
    doing = f"asking for the newest record of {topic}"
    return max(int(answer(client, future, doing).timestamp) for future in futures.values())


def broker_line(newest_ms: int, now_ms: int, settings: Settings) -> Diagnosis:
    """Judge by the append time of the newest record (-1 if there is none)."""
    unknown = "can't be measured without writing; a running processor does (waitreg_processor_clock_skew_seconds)"
    if newest_ms < 0:
        seen = f"{settings.wait.topic} has no record yet to compare with; the difference {unknown}"
        return ok(seen)
    ahead_s = (newest_ms - now_ms) / 1000
    if ahead_s <= 0:
        seen = f"not ahead of this host's (newest record {-ahead_s:.1f} s old); whether it is behind {unknown}"
        return ok(seen)
    return difference_line(f"at least {ahead_s:.3f} s ahead of this host's", ahead_s, settings)


def difference_line(seen: str, off_s: float, settings: Settings) -> Diagnosis:
    """Warn at a quarter of what the settings tolerate, and refuse at half of it.

    They tolerate the smaller of processor.margin_s and wait.skew_allowance_s, or the margin if the allowance is 0.
    """
    tolerated = {"processor.margin_s": settings.processor.margin_s}
    if settings.wait.skew_allowance_s > 0:
        tolerated["wait.skew_allowance_s"] = settings.wait.skew_allowance_s
    name, limit_s = min(tolerated.items(), key=lambda item: item[1])
    if off_s < limit_s / 4:
        return ok(seen)
    if off_s < limit_s / 2:
        return warning(f"{seen}: more than a quarter of {name} = {limit_s:g} s", FIX)
    return error(f"{seen}: more than half of {name} = {limit_s:g} s", FIX)
