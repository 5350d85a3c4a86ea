"""`waitreg reconcile`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import click

from wait_registry.errors import ConfigurationError, ReconciliationError
from wait_registry.settings.sink import SinkKind
from wait_registry.settings.tree import Settings
from waitreg.command import Command, Invocation
from waitreg.reconcile.breaches import Breach
from waitreg.reconcile.evidence import read_evidence, sink_lag
from waitreg.reconcile.reconciliation import reconcile
from waitreg.reconcile.screen import Screen
from waitreg.reconcile.verdict import show_reconciliations

# Since September 2001 a moment in ms has 13 digits: one in seconds or nanoseconds is refused.
_MOMENT_MS: Final = click.IntRange(10**12, 10**15, max_open=True)
_POLL_S: Final = 2.0


@click.command(
    "reconcile",
    cls=Command,
    examples=(
        "waitreg reconcile --manifest published.jsonl --calls calls.jsonl --no-kills",
        "waitreg reconcile --manifest published.jsonl --calls calls.jsonl --kill 1764000000000 --kill 1764000060000",
        "waitreg reconcile --manifest published.jsonl --calls calls.jsonl --set processor.group=shop --deadline 60",
    ),
)
@click.option(
    "--manifest", type=click.Path(path_type=Path), required=True, metavar="FILE", help="What `waitreg load` wrote."
)
@click.option(
    "--calls", type=click.Path(path_type=Path), required=True, metavar="FILE", help="The log of `waitreg downstream`."
)
@click.option(
    "--deadline",
    type=float,
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for records that have no end yet.",
)
@click.option(
    "--kill",
    "kills",
    type=_MOMENT_MS,
    multiple=True,
    metavar="MS",
    help="When a processor was killed or paused, in ms since 1970 (`date +%s%3N`); once per kill.",
)
@click.option("--no-kills", is_flag=True, help="No processor was killed.")
@click.pass_obj
def command(
    invocation: Invocation, manifest: Path, calls: Path, deadline: float, kills: tuple[int, ...], no_kills: bool
) -> int:
    """Judge from outside where every published record ended.

    Compares the records that `waitreg load --manifest` published with what happened to them: the log of the `waitreg
    downstream` that was called, the dead letters and the wait topic as an independent consumer reads them, and
    Postgres. Waits until every record has its end, --deadline at most. processor.group, processor.topics and
    dead_letter.topic must be those of the processors that handled the records, and the manifest must name every record
    that these topics got meanwhile.

    A record that is done and expired is right only if a kill came between the answer and the tombstone. Give --kill
    or --no-kills to have that judged; without them the row `forgotten` says "not checked".

    The wait topic is compacted. If it no longer has an entry that the verdict depends on, the exit code is 2: the
    evidence is too old. It is young enough within wait.segment_ms (1 h by default) of the load. Else start again with
    another input topic and another manifest.
    """
    if kills and no_kills:
        raise click.UsageError("--kill and --no-kills exclude each other")
    settings = invocation.settings()
    if settings.processor.group is None or not settings.processor.topics:
        raise ConfigurationError("processor.group and processor.topics say whose records these are: set both")
    for file in (manifest, calls):
        if not file.is_file():
            raise ConfigurationError(f"{file} is not there: --manifest and --calls take what load and downstream wrote")
    return _reconcile(settings, manifest, calls, deadline, () if no_kills else kills or None)


def _reconcile(
    settings: Settings, manifest: Path, calls: Path, deadline_s: float, kills_ms: tuple[int, ...] | None
) -> int:
    """Read the evidence until every record has its end and Postgres shows the same as the log, then judge.

    After the deadline the evidence is judged as it is: records without an end count as waiting or lost.
    """
    screen = Screen()
    deadline = time.monotonic() + deadline_s
    with screen.progress({"ended": 0}) as show:
        while True:
            # The lag first: what the sink reads while the rest is read can't hide. A connector's position isn't in
            # Postgres, so only the comparison of its table counts.
            lag = sink_lag(settings) if settings.sink.kind is SinkKind.SPARK else 0
            result = reconcile(read_evidence(settings, manifest, calls, kills_ms))
            ended = result.published - result.lost - result.waiting
            show({"ended": ended}, result.published, f"(the sink has {lag} entries to read)" if lag else "")
            settled = ended == result.published and not result.breaches[Breach.TABLES_DIFFER]
            if (settled and not lag) or time.monotonic() > deadline:
                break
            time.sleep(_POLL_S)
    if show_reconciliations(screen, {str(settings.processor.group): result}):
        return 0
    raise ReconciliationError("a guarantee was broken, or records are not settled yet; see the table above")
