"""What lies just on this side of a bound, or is explained beyond it (P7)."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.history.history import History, RssSample
from tests.unit.chaos.breaches.bounds import bulky, taken_of
from tests.unit.chaos.breaches.decisions import saying
from tests.unit.chaos.breaches.planting import swapped, taken_at_once, together
from tests.unit.chaos.near_misses.allowing import allowed
from tests.unit.chaos.script import LIMITS, TOLD, Script


@allowed("as many calls at once as there are slots")
def _(script: Script) -> History:
    together(script, LIMITS.max_in_flight * LIMITS.processes, instances=2)
    return script.history()


@allowed("one fetch that passes the bound in bytes, and is renewed while it is passed")
def _(script: Script) -> History:
    script.wait(30_000)
    held = taken_at_once(script, "processor-1/1")
    fetched_ms = script.now_ms + 20
    fetched = [bulky(script, LIMITS.look_ahead_bytes or 0) for _ in range(3)]
    fetched = [saying(script, entry, expires_at_ms=fetched_ms + TOLD.ttl_ms) for entry in fetched]
    renewed = []
    for entry in fetched:
        assert entry.registration is not None
        renewed.append(script.register(entry.registration.original))
    for entry in (held, *renewed):
        script.call(entry, last_ms=5)
        script.tombstone(entry)
    return script.history()


@allowed("hands full of bytes of another instance, or up to the moment of the fetch")
def _(script: Script) -> History:
    script.wait(30_000)
    first = bulky(script, LIMITS.look_ahead_bytes or 0)
    other = taken_at_once(script, "processor-2/1")
    script.call(first, last_ms=5)
    script.tombstone(first)
    entries = [bulky(script, (LIMITS.look_ahead_bytes or 0) - 1), taken_at_once(script, "processor-1/1"), other]
    for entry in entries:
        script.call(entry, last_ms=5)
        script.tombstone(entry)
    return script.history()


@allowed("as many rows as a chunk may have, more than once")
def _(script: Script) -> History:
    for _ in range(2):
        entries = [taken_of(script, 1, "dlq") for _ in range(LIMITS.chunk_rows or 0)]
        script.fault("kill", "processor-1")
        script.expire(entries[-1])
        for entry in entries:
            script.export(entry)
        script.wait_log[-1] = replace(script.wait_log[-1], offset=script.wait_log[-1].offset - 1)
    return script.history()


@allowed("more calls at once beside a processor that was killed and started again")
def _(script: Script) -> History:
    together(script, LIMITS.max_in_flight * LIMITS.processes + 1, instances=3)
    began_ms = script.calls[-1].started_ms - 2_000
    script.faults.append(replace(script.faults[-1], began_ms=began_ms, ended_ms=began_ms + 1_000))
    return script.history()


@allowed("calls counted as over when their caller hung up, noticed a little later")
def _(script: Script) -> History:
    script.wait(30_000)
    entries = [
        taken_at_once(script, f"processor-{1 + number % 3}/1")
        for number in range(LIMITS.max_in_flight * LIMITS.processes + 1)
    ]
    for entry in entries:
        call = script.call(entry, status=499, last_ms=10)
        script.calls = swapped(script.calls, call, replace(call, finished_ms=call.finished_ms + 240))
    script.wait(240)
    for entry in entries:
        script.call(entry)
        script.tombstone(entry)
    return script.history()


@allowed("calls counted for half of their time: their caller may have given up, and the downstream not have seen it")
def _(script: Script) -> History:
    script.wait(30_000)
    entries = [taken_at_once(script, "processor-1/1") for _ in range(2 * LIMITS.max_in_flight)]
    script.wait(5)
    began_ms = script.now_ms
    script.wait(TOLD.attempt_ms)
    for number, entry in enumerate(entries):
        call = script.call(entry)
        started_ms = began_ms + (0 if number < LIMITS.max_in_flight else TOLD.attempt_ms - 200)
        script.calls = swapped(script.calls, call, replace(call, started_ms=started_ms))
        script.tombstone(entry)
    return script.history()


@allowed("more calls at once beside all processors killed and started again")
def _(script: Script) -> History:
    for target in ("group", "everything"):
        together(script, LIMITS.max_in_flight * LIMITS.processes + 1, instances=3)
        began_ms = script.calls[-1].started_ms - 2_000
        script.faults.append(replace(script.faults[-1], target=target, began_ms=began_ms, ended_ms=began_ms + 1_000))
    return script.history()


@allowed("nobody was told anything: no settings are known")
def _(script: Script) -> History:
    together(script, LIMITS.max_in_flight + 1, instances=1)
    return replace(script.history(), told=None)


@allowed("memory below its limit, and of what has none")
def _(script: Script) -> History:
    samples = [
        RssSample(script.now_ms, "processor-2", 77, LIMITS.rss_bytes["processor"]),
        RssSample(script.now_ms, "sink", 78, 10**12),
    ]
    return replace(script.history(), limits=replace(LIMITS, samples=samples))
