"""Near misses: what at-least-once allows, what a fault explains, and what lies just on this side of a bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.chaos.checker.verdict import check
from tests.chaos.checker.violation import Kind
from tests.chaos.history.entries import DEAD_LETTERED, DISCARDED, EXPIRED, MALFORMED, UNREGISTRABLE, WaitEntry
from tests.chaos.history.history import History, RssSample
from tests.chaos.history.record import UNREADABLE_HEADERS
from tests.unit.chaos.breaches.bounds import bulky, taken_of
from tests.unit.chaos.breaches.decisions import saying
from tests.unit.chaos.breaches.planting import swapped, taken, taken_at_once, together
from tests.unit.chaos.run import clean_run
from tests.unit.chaos.script import LIMITS, TOLD, WAIT, WAIT_PARTITIONS, Script
from waitreg.fingerprint import Fingerprint, fingerprint

NEAR_MISSES: list[tuple[str, Callable[[Script], History]]] = []


def allowed(name: str) -> Callable[[Callable[[Script], History]], None]:
    """Add a near miss to the list."""
    return lambda play: NEAR_MISSES.append((name, play))


@allowed("a registration renewed before it started, and done once")
def _(script: Script) -> History:
    entry = taken(script)
    assert entry.registration is not None
    renewed = script.register(entry.registration.original)
    script.call(renewed)
    script.tombstone(renewed)
    return script.history()


@allowed("handled by both owners of a partition that moved, and resolved twice")
def _(script: Script) -> History:
    entry = taken(script)
    assert entry.registration is not None
    again = script.register(entry.registration.original, "processor-2/1")
    for one in (entry, again):
        script.call(one)
        script.tombstone(one)
    return script.history()


@allowed("done twice before its tombstone: the first answer came too late for its caller")
def _(script: Script) -> History:
    entry = taken(script)
    script.call(entry)
    script.call(entry)
    script.tombstone(entry)
    return script.history()


@allowed("a tombstone of the very millisecond in which its call ended")
def _(script: Script) -> History:
    entry = taken(script)
    call = script.call(entry)
    stone = script.tombstone(entry)
    script.calls = swapped(script.calls, call, replace(call, finished_ms=stone.append_ms + 1))
    return script.history()


@allowed("discarded by the downstream's status")
def _(script: Script) -> History:
    entry = taken(script)
    script.call(entry, status=404)
    script.tombstone(entry, DISCARDED)
    return script.history()


@allowed("resolved while its export was on its way")
def _(script: Script) -> History:
    entry = taken(script)
    script.fault("freeze", "processor-1")
    script.expire(entry)
    script.wait(3_000)
    script.call(entry)
    script.tombstone(entry)
    script.export(entry)
    return script.history()


@allowed("resolved while the sweeper was frozen between reading and writing")
def _(script: Script) -> History:
    entry = taken(script)
    script.fault("freeze", "processor-1")
    script.expire(entry)
    began_ms = script.now_ms
    script.wait(100)
    script.call(entry)
    script.tombstone(entry)
    script.wait(6_000)
    script.faults.append(replace(script.faults[-1], target="sweeper-1", began_ms=began_ms, ended_ms=script.now_ms))
    script.wait(500)
    script.export(entry)
    return script.history()


@allowed("answered just before its processor was killed")
def _(script: Script) -> History:
    entry = taken(script)
    script.call(entry)
    script.wait(1_000)
    script.fault("kill", "processor-1")
    script.export(entry)
    return script.history()


@allowed("failed for good just before its processor was killed, or given up by its caller")
def _(script: Script) -> History:
    for status in (400, 499):
        entry = taken(script)
        script.call(entry, status=status)
        script.wait(1_000)
        script.fault("kill", "processor-1")
        script.export(entry)
    return script.history()


@allowed("answered while the broker was away")
def _(script: Script) -> History:
    entry = taken(script)
    script.fault("kill", "broker", for_ms=3_000)
    script.call(entry)
    script.export(entry)
    return script.history()


@allowed("done under its first registration, whose tombstone a sleeper's second one followed")
def _(script: Script) -> History:
    entry = taken(script)
    assert entry.registration is not None
    script.call(entry)
    script.tombstone(entry)
    late = script.register(entry.registration.original, "processor-2/1")
    script.export(late)
    return script.history()


@allowed("a record whose headers nobody can read, dead-lettered without them")
def _(script: Script) -> History:
    place = script.publish()
    letter = script.unregistered(place, MALFORMED)
    script.commit(place)
    digests = letter.content
    record = script.published[-1]
    unreadable = replace(record, fingerprint=Fingerprint(digests.key, digests.value, UNREADABLE_HEADERS))
    script.published[-1] = unreadable
    bare = Fingerprint(digests.key, digests.value, fingerprint(None, None, ()).headers)
    script.dead_letters = swapped(script.dead_letters, letter, replace(letter, content=bare))
    return script.history()


@allowed("half a body of a caller that hung up")
def _(script: Script) -> History:
    entry = taken(script)
    call = script.call(entry, status=499)
    script.calls = swapped(script.calls, call, replace(call, body_sha256="half of it"))
    script.call(entry)
    script.tombstone(entry)
    return script.history()


@allowed("somebody else's rubbish in the wait topic, put aside")
def _(script: Script) -> History:
    offset = script.ends[WAIT, 0]
    script.ends[WAIT, 0] += 1
    script.wait_log.append(WaitEntry(0, offset, script.now_ms, "rubbish", True, unreadable="no headers"))
    return script.history()


@allowed("a look that doesn't know the dead letter topic yet")
def _(script: Script) -> History:
    history = script.history()
    looks = [replace(look, letter_ends={}) for look in history.looks]
    # What is too large has only the last look for its dead letter: the reading's own.
    return replace(history, looks=[replace(look, committed={}) for look in looks])


@allowed("an end that a broker, just started, shows lower than it was")
def _(script: Script) -> History:
    place = script.publish(2)
    entry = script.register(place)
    script.look()
    script.commit(place)
    look = script.look()
    lower = replace(look, wait_ends=dict.fromkeys(range(WAIT_PARTITIONS), 0))
    script.looks = swapped(script.looks, look, lower)
    script.call(entry)
    script.tombstone(entry)
    return script.history()


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


@allowed("exported in the very millisecond in which it fell due")
def _(script: Script) -> History:
    entry = taken(script)
    assert entry.registration is not None
    script.fault("kill", "processor-1")
    script.wait(entry.registration.expires_at_ms + TOLD.skew_ms - 4 - script.now_ms)
    script.letter(entry, EXPIRED)
    script.tombstone(entry, EXPIRED)
    return script.history()


@allowed("answered, and exported before the tombstone could come, on a machine that stood still")
def _(script: Script) -> History:
    entry = taken(script)
    script.expire(entry)
    script.wait(-3_000)
    script.call(entry)
    script.wait(3_000)
    script.export(entry)
    script.tombstone(entry)
    return script.history()


@allowed("answered by a process whose link was slow a while ago")
def _(script: Script) -> History:
    entry = taken(script)
    script.fault("slow_broker_link", "processor-1")
    script.wait(2_000)
    script.call(entry)
    script.export(entry)
    return script.history()


@allowed("answered by a member of a storm, who was told to end")
def _(script: Script) -> History:
    script.wait(30_000)
    place = script.publish(1)
    entry = script.register(place, "visitor-2/1")
    script.commit(place)
    script.call(entry)
    script.fault("storm", "group")
    script.export(entry)
    return script.history()


@allowed("given up after the time of a try, which no call shows")
def _(script: Script) -> History:
    entry = taken(script)
    script.wait(TOLD.attempt_ms)
    script.letter(entry)
    script.look()
    script.tombstone(entry, DEAD_LETTERED)
    return script.history()


@allowed("failed at once, all tries answered with what is to be tried again, or one with what isn't")
def _(script: Script) -> History:
    for statuses in ((503, 503), (0, 503), (503, 400), (400,)):
        entry = taken(script)
        for status in statuses:
            script.call(entry, status=status)
        script.letter(entry)
        script.look()
        script.tombstone(entry, DEAD_LETTERED)
    return script.history()


@allowed("called under the attempt of either registration")
def _(script: Script) -> History:
    entry = taken(script, policy="redeliver")
    script.fault("kill", "processor-1")
    place = script.redeliver(entry).place
    again = script.register(place, policy="redeliver")
    script.commit(place)
    script.call(again)
    script.tombstone(again)
    return script.history()


@allowed("begun with just the time left that its attempts take, and begun again with that for one")
def _(script: Script) -> History:
    entry = taken(script)
    assert entry.registration is not None
    expires_at_ms = entry.registration.expires_at_ms
    script.wait(expires_at_ms - TOLD.attempt_ms * TOLD.tries - 3 - script.now_ms)
    script.call(entry, status=503)
    script.look()
    script.wait(expires_at_ms - TOLD.attempt_ms - 3 - script.now_ms)
    script.call(entry)
    script.tombstone(entry)
    return script.history()


@allowed("begun late by a process that was frozen, or waited for the broker, or a downstream that was away")
def _(script: Script) -> History:
    for name, target in (("freeze", "processor-1"), ("freeze", "broker"), ("gone", "downstream")):
        script.wait(40_000)
        entry = taken(script)
        script.fault(name, target, for_ms=7_500)
        script.call(entry)
        script.tombstone(entry)
    return script.history()


@allowed("begun late under its first registration, by another owner under a second one")
def _(script: Script) -> History:
    entry = taken(script)
    assert entry.registration is not None
    script.wait(6_500)
    script.look()
    again = script.register(entry.registration.original, "processor-2/1")
    script.call(again)
    script.tombstone(again)
    return script.history()


@allowed("begun late on a machine that stood still")
def _(script: Script) -> History:
    entry = taken(script)
    script.now_ms += 7_000
    script.look()
    script.call(entry)
    script.tombstone(entry)
    return script.history()


@allowed("failed under each of two registrations, since its partition had moved")
def _(script: Script) -> History:
    for name, target in (("kill", "processor-2"), ("freeze", "broker"), ("add_partitions", "input")):
        script.wait(40_000)
        entry = taken(script)
        assert entry.registration is not None
        script.fault(name, target, for_ms=10)
        for one in (entry, script.register(entry.registration.original)):
            script.call(one, status=400)
            script.letter(one)
            script.look()
            script.tombstone(one, DEAD_LETTERED)
    return script.history()


@allowed("not registrable, and dead-lettered whenever it was taken, in a storm")
def _(script: Script) -> History:
    place = script.publish(1)
    script.large.add(place)
    script.fault("storm", "group", for_ms=3_000)
    for _ in range(6):
        script.unregistered(place, UNREGISTRABLE)
    script.commit(place)
    return script.history()


@allowed("not registrable, and dead-lettered twice, while the machine stood still")
def _(script: Script) -> History:
    script.wait(60_000)
    place = script.publish(1)
    script.large.add(place)
    script.unregistered(place, UNREGISTRABLE)
    script.look()
    script.now_ms += 4_000
    script.look()
    script.unregistered(place, UNREGISTRABLE)
    script.commit(place)
    return script.history()


@allowed("failed while the downstream refused connections")
def _(script: Script) -> History:
    entry = taken(script)
    script.fault("gone", "downstream", for_ms=100)
    script.letter(entry)
    script.look()
    script.tombstone(entry, DEAD_LETTERED)
    return script.history()


@allowed("registered with less time left, since its way to a frozen broker was long")
def _(script: Script) -> History:
    script.wait(30_000)
    place = script.publish(1)
    expires_at_ms = script.now_ms + TOLD.ttl_ms
    script.fault("freeze", "broker", for_ms=7_000)
    entry = saying(script, script.register(place), expires_at_ms=expires_at_ms)
    script.commit(place)
    script.call(entry)
    script.tombstone(entry)
    return script.history()


@allowed("registered with less time left, since what its group produces was held")
def _(script: Script) -> History:
    script.wait(30_000)
    place = script.publish(1)
    expires_at_ms = script.now_ms + TOLD.ttl_ms
    script.fault("hold_produce", "group", for_ms=6_500)
    entry = saying(script, script.register(place), expires_at_ms=expires_at_ms)
    script.commit(place)
    script.call(entry)
    script.tombstone(entry)
    return script.history()


@allowed("registered with less time left, while the machine stood still")
def _(script: Script) -> History:
    script.wait(30_000)
    place = script.publish(1)
    script.look()
    expires_at_ms = script.now_ms + TOLD.ttl_ms
    script.now_ms += 7_000
    entry = saying(script, script.register(place), expires_at_ms=expires_at_ms)
    script.commit(place)
    script.look()
    script.call(entry)
    script.tombstone(entry)
    return script.history()


@allowed("answered just before all processors were killed, or all services")
def _(script: Script) -> History:
    for target in ("group", "everything"):
        entry = taken(script)
        script.call(entry)
        script.wait(1_000)
        script.fault("kill", target)
        script.export(entry)
    return script.history()


@allowed("more calls at once beside all processors killed and started again")
def _(script: Script) -> History:
    for target in ("group", "everything"):
        together(script, LIMITS.max_in_flight * LIMITS.processes + 1, instances=3)
        began_ms = script.calls[-1].started_ms - 2_000
        script.faults.append(replace(script.faults[-1], target=target, began_ms=began_ms, ended_ms=began_ms + 1_000))
    return script.history()


@allowed("too large to be delivered again, and dead-lettered in its place")
def _(script: Script) -> History:
    entry = taken(script, policy="redeliver")
    assert entry.registration is not None
    script.large.add(entry.registration.original)
    script.fault("kill", "processor-1")
    script.export(entry)
    return script.history()


@allowed("handled as often as it has tries, each time that it is registered")
def _(script: Script) -> History:
    entry = taken(script)
    assert entry.registration is not None
    again = script.register(entry.registration.original, "processor-2/1")
    for _ in range(2 * TOLD.tries):
        script.call(again)
    script.tombstone(again)
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


@allowed("a handler that isn't our downstream: the tombstone's word is taken")
def _(script: Script) -> History:
    return replace(script.history(), calls=None)


@allowed("Postgres is not looked at")
def _(script: Script) -> History:
    return replace(script.history(), wait_rows=None, dead_letter_rows=None, quarantine_rows=None, progress_rows=None)


@pytest.mark.parametrize("play", [play for _, play in NEAR_MISSES], ids=[name for name, _ in NEAR_MISSES])
def test_it_passes(play: Callable[[Script], History]) -> None:
    verdict = check(play(clean_run()))
    assert [f"{one.kind}: {one.why}" for one in verdict.violations] == []
    assert verdict.passed


def test_a_fault_long_after_the_answer_explains_nothing() -> None:
    script = clean_run()
    entry = taken(script)
    script.call(entry)
    script.wait(6_000)
    script.fault("kill", "processor-1")
    script.export(entry)
    assert check(script.history()).counts[Kind.FORGOTTEN] == 1
