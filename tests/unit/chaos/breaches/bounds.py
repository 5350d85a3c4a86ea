"""Bounds passed (P7)."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.checker.violation import Kind
from tests.chaos.history.history import History, RssSample
from tests.unit.chaos.breaches.planting import Choose, breach, taken_at_once, together
from tests.unit.chaos.script import LIMITS, Script


@breach(Kind.BOUND, "calls in flight")
def _(script: Script, choose: Choose) -> History:
    together(script, LIMITS.max_in_flight * LIMITS.processes + 1, instances=2)
    return script.history()


@breach(Kind.BOUND, "registrations unfinished by one instance")
def _(script: Script, choose: Choose) -> History:
    script.wait(30_000)
    entries = [taken_at_once(script, "host/1") for _ in range(LIMITS.look_ahead + 1)]
    for entry in entries:
        script.call(entry, last_ms=5)
        script.tombstone(entry)
    return script.history()


@breach(Kind.BOUND, "memory")
def _(script: Script, choose: Choose) -> History:
    sample = RssSample(script.now_ms, "processor-2", 77, LIMITS.rss_bytes["processor"] + 1)
    return replace(script.history(), limits=replace(LIMITS, samples=[sample]))
