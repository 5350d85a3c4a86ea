"""Kill a processor during its work and follow the records that it had in flight."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from wait_registry.demo.background import Background, BackgroundError
from wait_registry.demo.calls import ABORTED, read_calls
from wait_registry.demo.evidence import read_dead_letters, sink_lag
from wait_registry.demo.manifest import read_manifest
from wait_registry.demo.reconciliation import EXPIRED
from wait_registry.demo.run import Run
from wait_registry.demo.screen import Screen
from wait_registry.demo.wait_log import DeadLetterSeen

POLL_S = 0.25
DEADLINE_S = 120.0
SHOWN = 3

REGISTERED = """
    select wait_expiration_uuid, original_partition, original_offset, instance, wait_expiration_time
    from wait where consumer_group = %s order by original_partition, original_offset
"""


@dataclass(frozen=True, slots=True)
class Registration:
    """A row of the table `wait`: a registered record without an outcome."""

    wait_id: str
    partition: int
    offset: int
    instance: str
    expires_at: datetime


def crash(screen: Screen, run: Run) -> None:
    """Kill the run's processor, show its rows in Postgres, and wait for the outcome of every record.

    The reconciliation judges records that are not settled after two minutes.

    Raises:
        BackgroundError: a process ended.
    """
    victim = run.start_processor("processor-killed")
    kill_after = run.platform.plan.kill_after
    with screen.progress({"before the kill": kill_after}) as bars:
        while (completed := run.completed()) < kill_after:
            bars.show({"before the kill": completed})
            victim.require_running()
            time.sleep(POLL_S / 5)
        bars.show({"before the kill": kill_after})
    run.kill(victim)
    screen.step(f"Processor {victim.pid} killed with SIGKILL; its running calls are interrupted")
    if not _poll(lambda: sink_lag(run.settings) == 0):
        raise BackgroundError(f"the sink did not catch up within {DEADLINE_S:.0f} s")
    registered = [Registration(*row) for row in run.platform.query(REGISTERED, run.settings.processor.group)]
    _show_registered(screen, run, registered)
    screen.step("Another processor of the group consumes the uncommitted records; the others expire")
    replacement = run.start_processor("processor-replacement")
    _await_ends(screen, run, registered, replacement)
    _show_ends(screen, run, registered)


def _show_registered(screen: Screen, run: Run, registered: Sequence[Registration]) -> None:
    cut_off = sum(1 for call in read_calls(run.calls) if call.status == ABORTED)
    screen.note(f"{len(registered)} records are in Postgres: {cut_off} were in a call, the others in the prefetch")
    rows = [
        (one.wait_id, f"{run.topic}/{one.partition}@{one.offset}", one.instance, f"{one.expires_at:%H:%M:%S}")
        for one in registered[:SHOWN]
    ]
    if len(registered) > SHOWN:
        rows.append(("...", "", "", ""))
    screen.table("select * from wait_readable", ("wait ID", "record", "processor", "expires"), rows)


def _await_ends(screen: Screen, run: Run, registered: Sequence[Registration], replacement: Background) -> None:
    ids = {one.wait_id for one in registered}
    done, settled = "completed calls", "settled of the killed processor's"
    with screen.progress({done: run.records, settled: len(registered)}) as bars:

        def everything_ended() -> bool:
            replacement.require_running()
            left = {row[0] for row in run.platform.query(REGISTERED, run.settings.processor.group)}
            completed = run.completed()
            bars.show({done: completed, settled: len(registered) - len(ids & left)})
            if left or sink_lag(run.settings):
                return False
            result = run.reconcile()
            if not result.lost:
                bars.show({done: completed}, total=completed)
            return result.finished and not result.lost

        ended = _poll(everything_ended)
    if not ended:
        screen.note(f"[red]some records are not settled after {DEADLINE_S:.0f} s[/]")


def _show_ends(screen: Screen, run: Run, registered: Sequence[Registration]) -> None:
    ids = {one.wait_id for one in registered}
    topic = run.settings.dead_letter.topic
    letters = [
        letter
        for letter in read_dead_letters(run.settings, topic, run.settings.processor.group)
        if letter.reason == EXPIRED and letter.wait_id in ids
    ]
    expired = {letter.wait_id for letter in letters}
    screen.note(
        f"of {len(ids)}: {len(expired)} expired, with {len(letters)} dead letters; "
        f"{len(ids - expired)} consumed again with the same wait ID and finished"
    )
    published = {one.coordinates: one for one in read_manifest(run.manifest)}
    same = sum(1 for letter in letters if letter.fingerprint == published[letter.original].fingerprint)
    screen.note(f"key, value and headers byte for byte as published: {same} of {len(letters)}")
    rows = [_row(letter) for letter in letters[:SHOWN]]
    if len(letters) > SHOWN:
        rows.append(("...", "", "", ""))
    columns = ("wait ID", "record", "reason", "SHA-256 of the value")
    screen.table(f"dead letter topic {topic}, read by an independent read_committed consumer", columns, rows)


def _row(letter: DeadLetterSeen) -> tuple[str, str, str, str]:
    topic, partition, offset = letter.original
    digest = letter.fingerprint.value
    return (letter.wait_id, f"{topic}/{partition}@{offset}", letter.reason, "null" if digest is None else digest[:16])


def _poll(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True
