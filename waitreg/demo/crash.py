"""Kill a processor during its work and follow the records that it had in flight."""

from __future__ import annotations

import time
from collections.abc import Set

from waitreg.demo.run import DEADLINE_S, Run, within_deadline
from waitreg.downstream.calls import ABORTED, read_calls
from waitreg.local.background import Background
from waitreg.local.server import ServerError
from waitreg.reconcile.evidence import query, read_dead_letters, sink_lag
from waitreg.reconcile.reconciliation import EXPIRED
from waitreg.reconcile.screen import Screen

POLL_S = 0.05
SHOWN = 3

REGISTERED = """
    select wait_expiration_uuid, original_topic || '/' || original_partition || '@' || original_offset, instance,
        to_char(wait_expiration_time, 'HH24:MI:SS')
    from wait where consumer_group = %s order by original_partition, original_offset
"""


def crash(screen: Screen, run: Run) -> None:
    """Kill the run's processor, show its rows in Postgres, and wait for the outcome of every record.

    The reconciliation judges records that are not settled after two minutes.

    Raises:
        ServerError: a process ended.
    """
    victim = run.start_processor("processor-killed")
    pid, kill_after = victim.pid, run.platform.plan.kill_after
    with screen.progress({"before the kill": kill_after}) as show:
        while (completed := run.completed()) < kill_after:
            show({"before the kill": completed})
            victim.require_running()
            time.sleep(POLL_S)
        show({"before the kill": kill_after})
    run.kill(victim)
    screen.step(f"Processor {pid} killed with SIGKILL; its running calls are interrupted")
    if not within_deadline(lambda: sink_lag(run.settings) == 0):
        raise ServerError(f"the sink did not catch up within {DEADLINE_S:.0f} s")
    registered = query(run.settings, REGISTERED, run.settings.processor.group)
    cut_off = sum(1 for call in read_calls(run.calls) if call.status == ABORTED)
    screen.note(f"{len(registered)} records are in Postgres: {cut_off} were in a call, the others in the prefetch")
    rows = [*registered[:SHOWN], *([("...", "", "", "")] if len(registered) > SHOWN else [])]
    screen.table("select * from wait_readable", ("wait ID", "record", "processor", "expires"), rows)
    screen.step("Another processor of the group consumes the uncommitted records; the others expire")
    ids = {row[0] for row in registered}
    _await_ends(screen, run, ids, run.start_processor("processor-replacement"))
    _show_ends(screen, run, ids)


def _await_ends(screen: Screen, run: Run, ids: Set[str], replacement: Background) -> None:
    done, settled = "completed calls", "settled of the killed processor's"
    with screen.progress({done: run.records, settled: len(ids)}) as show:

        def everything_ended() -> bool:
            replacement.require_running()
            left = {row[0] for row in query(run.settings, REGISTERED, run.settings.processor.group)}
            show({done: run.completed(), settled: len(ids - left)})
            if left or sink_lag(run.settings):
                return False
            result = run.reconcile()
            return result.finished and not result.lost

        ended = within_deadline(everything_ended)
    if not ended:
        screen.note(f"[red]some records are not settled after {DEADLINE_S:.0f} s[/]")


def _show_ends(screen: Screen, run: Run, ids: Set[str]) -> None:
    topic = run.settings.dead_letter.topic
    dead_letters = [
        dead_letter
        for dead_letter in read_dead_letters(run.settings, topic, run.settings.processor.group)
        if dead_letter.reason == EXPIRED and dead_letter.wait_id in ids
    ]
    expired = {dead_letter.wait_id for dead_letter in dead_letters}
    screen.note(
        f"of {len(ids)}: {len(expired)} expired, with {len(dead_letters)} dead letters in {topic}, read by an "
        f"independent read_committed consumer; {len(ids - expired)} consumed again with the same wait ID and finished"
    )
