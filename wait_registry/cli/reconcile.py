"""`waitreg reconcile`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

from wait_registry.cli.command import Command, Invocation
from wait_registry.errors import ConfigurationError, ReconciliationError, WaitRegistryError

if TYPE_CHECKING:
    from wait_registry.demo.reconciliation import Reconciliation

# September 2001: the first moment of 13 digits, so that seconds are told apart.
_FIRST_MS: Final = 1_000_000_000_000


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
    kills = parser.add_mutually_exclusive_group()
    kills.add_argument(
        "--kill",
        type=epoch_ms,
        action="append",
        metavar="MS",
        help="when a processor was killed (or began a long pause), ms since 1970 (`date +%%s%%3N`); once a kill",
    )
    kills.add_argument("--no-kills", action="store_true", help="no processor was killed")


def epoch_ms(text: str) -> int:
    """Return a moment in ms since 1970; raises as `argparse` expects, also for one in seconds."""
    moment_ms = int(text) if text.isdecimal() else -1
    if not _FIRST_MS <= moment_ms < 1000 * _FIRST_MS:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no moment in ms since 1970: expected 13 digits, e.g. `date +%s%3N`"
        )
    return moment_ms


def _run(invocation: Invocation) -> int:
    from wait_registry.demo.awaited_reconciliation import Awaiting, reconcile_when_ended
    from wait_registry.demo.screen import Bar, Screen
    from wait_registry.demo.verdict import show_reconciliations

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

        kills_ms = () if given.no_kills else given.kill
        result = reconcile_when_ended(Awaiting(settings, given.manifest, given.calls, given.deadline, kills_ms), show)
        show(result, 0)
    if show_reconciliations(screen, {settings.processor.group: result}):
        return 0
    raise unproven(result, given.manifest)


def unproven(result: Reconciliation, manifest: Path) -> WaitRegistryError:
    """Return the error of a reconciliation that doesn't end with every promise kept."""
    from wait_registry.demo.reconciliation import Breach

    if result.ok and result.finished:
        exports = result.unjudged.get(Breach.UNPAIRED, 0)
        return ConfigurationError(
            f"nothing was seen broken, but the wait topic no longer has the end of {result.gone} records nor the "
            f"tombstones of {exports} exports: what {manifest} names is older than the topic's delete.retention.ms. "
            "Begin anew, with another input topic and another manifest"
        )
    return ReconciliationError("a promise was broken, or records have no end yet; the table above says which")


COMMAND: Final = Command(
    name="reconcile",
    group="trying out",
    summary="where did every published record end? Judged from outside, on a running system",
    description="""\
Compares what `waitreg load --manifest` published with what became of it: the log of the `waitreg downstream` that was
called, the dead letters and the wait topic as an independent consumer reads them, Postgres. Waits until every record
has its end, --deadline at most. processor.group, processor.topics and dead_letter.topic must be those of the
processors that worked on it, and the manifest must name every record that these topics got meanwhile.

A record that was done and expired all the same is right only when a kill came between the answer and its tombstone.
With --kill or --no-kills that is judged; without either the row `forgotten` says "not looked for".

The wait topic is compacted. A wait record that is gone is known by its tombstone; whether its export was false or its
tombstone forgotten can then not be judged. A tombstone goes once it is older than the topic's delete.retention.ms
(72 h by default): what only it would tell counts as "no longer in the log", as neither kept nor broken. If that is all
that keeps the verdict from being 0 the exit code is 2: the evidence is too old, so begin anew, with another input
topic and another manifest.""",
    examples=(
        "waitreg reconcile --manifest published.jsonl --calls calls.jsonl --no-kills",
        "waitreg reconcile --manifest published.jsonl --calls calls.jsonl --kill 1764000000000 --kill 1764000060000",
        "waitreg reconcile --manifest published.jsonl --calls calls.jsonl --set processor.group=shop --deadline 60",
    ),
    run=_run,
    configure=_configure,
    exit_codes=(0, 1, 2, 4),
)
