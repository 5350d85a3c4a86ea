"""`waitreg reconcile`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from wait_registry.errors import ConfigurationError, ReconciliationError
from waitreg.commands.command import Command, Invocation


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--manifest", type=Path, required=True, metavar="FILE", help="what `waitreg load` wrote")
    parser.add_argument("--calls", type=Path, required=True, metavar="FILE", help="the log of `waitreg downstream`")
    parser.add_argument(
        "--deadline",
        type=float,
        default=300.0,
        metavar="SECONDS",
        help="how long records may still be on their way (%(default)s)",
    )


def _run(invocation: Invocation) -> int:
    from waitreg.awaited_reconciliation import Awaiting, reconcile_when_ended
    from waitreg.demo.screen import Bar, Screen
    from waitreg.demo.verdict import show_reconciliations
    from waitreg.reconciliation import Reconciliation

    given = invocation.arguments
    settings = invocation.settings()
    if settings.processor.group is None or not settings.processor.topics:
        raise ConfigurationError("processor.group and processor.topics say whose records these are: set both")
    for file in (given.manifest, given.calls):
        if not file.is_file():
            raise ConfigurationError(f"{file} is not there: --manifest and --calls take what load and downstream wrote")
    screen = Screen()
    with screen.progress([Bar("ended", 0)]) as bars:

        def show(now: Reconciliation, lag: int) -> None:
            bar = bars.bars[0]
            bar.total, bar.completed = now.published, now.published - now.lost - now.waiting
            bar.note = f"(the sink has {lag} entries to read)" if lag else ""
            bars.show()

        result = reconcile_when_ended(Awaiting(settings, given.manifest, given.calls, given.deadline), show)
        show(result, 0)
    if not show_reconciliations(screen, {settings.processor.group: result}):
        raise ReconciliationError("a promise was broken, or records have no end yet; the table above says which")
    return 0


COMMAND: Final = Command(
    name="reconcile",
    group="trying out",
    summary="where did every published record end? Judged from outside, on a running system",
    description="""\
Compares what `waitreg load --manifest` published with what became of it: the log of the `waitreg downstream` that was
called, the dead letters and the wait topic as an independent consumer reads them, Postgres. Waits until every record
has its end, --deadline at most. processor.group, processor.topics and dead_letter.topic must be those of the
processors that worked on it.""",
    examples=(
        "waitreg reconcile --manifest published.jsonl --calls calls.jsonl",
        "waitreg reconcile --manifest published.jsonl --calls calls.jsonl --set processor.group=shop --deadline 60",
    ),
    run=_run,
    configure=_configure,
    exit_codes=(0, 1, 2, 4),
)
