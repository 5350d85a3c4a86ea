"""What the commands share that act on dead letters: their options, the dry run in text or JSON, and the job itself."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import click

from wait_registry.errors import ConfigurationError
from wait_registry.records.operation import Kind, Requested, State
from wait_registry.service.gc_tuning import tune_gc
from wait_registry.settings.tree import Settings
from waitreg.redrive.approval import to_send
from waitreg.redrive.dry_run import DryRun, dry_run
from waitreg.redrive.executor import Executor
from waitreg.redrive.job_decision import DONE, MEANINGS, Category
from waitreg.redrive.operator_events import write_request
from waitreg.redrive.progress import Progress, begun
from waitreg.redrive.request import Options, asker_of_command, open_job, selection

COUNT: Final = click.IntRange(1, 1_000_000_000)
_ALLOWING: Final = {
    "may_be_done": Category.MAY_BE_DONE,
    "finished_late": Category.FINISHED_LATE,
    "again": Category.ALREADY_REDRIVEN,
    "over_max": Category.MAX_REDRIVES,
    "without_members": Category.NO_MEMBERS,
}


def job_options(function: Callable[..., int]) -> Callable[..., int]:
    """Add what redrive, archive and restore take."""
    for option in reversed(
        (
            click.argument("which", metavar="[PLACE|WAIT-ID|CONDITION]...", nargs=-1),
            click.option(
                "--reason", default="", metavar="TEXT", help="Why, for those who look later. --send needs it."
            ),
            click.option("--limit", type=COUNT, metavar="N", help="End after N dead letters."),
            click.option("--send", is_flag=True, help="Do it; without this nothing is changed."),
            click.option("--json", "as_json", is_flag=True, help="Print one JSON object: the dry run, or the result."),
        )
    ):
        function = option(function)
    return function


def begin_new(
    settings: Settings, kind: Kind, which: tuple[str, ...], options: Options, *, send: bool, as_json: bool
) -> int:
    """Run the dry run of a new job, and then `begin` it.

    Args:
        settings: of the cluster, the tables and the limits.
        kind: what the job does.
        which: places, wait IDs and conditions.
        options: how.
        send: whether anything is changed.
        as_json: whether one JSON object is printed instead of text.

    Returns:
        The exit status.
    """
    require_reason(options.reason, send=send)
    tune_gc()
    chosen = selection(which, kind, options.allowed, datetime.now(UTC))
    found = dry_run(settings, kind, chosen, options, asker_of_command())
    return begin(settings, found, f"have them {DONE[kind].value}", send=send, as_json=as_json)


def require_reason(reason: str, *, send: bool) -> None:
    """Require a reason of what is done.

    Raises:
        ConfigurationError: there is none.
    """
    if send and not reason.strip():
        raise ConfigurationError("--send needs --reason TEXT, for those who look later")


def begin(settings: Settings, found: DryRun, aim: str, *, send: bool, as_json: bool = False) -> int:
    """Print what a dry run has found and, with ``send``, run its job, or have it await its approval.

    Args:
        settings: of the cluster, the tables and the limits.
        found: by the dry run.
        aim: what --send is for, for the person who left it out.
        send: whether anything is changed.
        as_json: whether one JSON object is printed instead of text.

    Returns:
        The exit status.
    """
    job, acted = found.job, to_send(found.job)
    if not as_json:
        _show_dry_run(found, aim, send=send)
    ended = None
    if send and acted and job.approval:
        write_request(settings, job)
        ended = begun(job)
    elif send and acted:
        ended = _run(settings, job, (lambda _: None) if as_json else partial(_show_progress, job))
    if as_json:
        print(json.dumps(_result(found, ended), ensure_ascii=False))
    elif ended is not None:
        _show_end(job, ended)
    if ended is None:
        return 0 if acted else 1
    return _code(job, ended)


def _result(found: DryRun, ended: Progress | None) -> dict[str, object]:
    """Return the JSON for scripts: the dry run and, if the job was begun, how it ended."""
    job = found.job
    ran = ended is not None and ended.state is not State.AWAITING
    named = {} if ended is None else {"job": job.job, "state": ended.state.value}
    return {
        **named,
        "kind": job.kind.value,
        "group": job.group,
        "conditions": list(job.conditions),
        "counts": dict(ended.counts) if ended is not None and ran else job.expected,
        "targets": dict(found.targets),
        "awaits_approval": job.approval,
        "sent": ran,
    }


def allowed(given: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the categories that options of a command allow."""
    return tuple(sorted(category.value for name, category in _ALLOWING.items() if given.get(name)))


def _show_dry_run(found: DryRun, aim: str, *, send: bool) -> None:
    """Print what a dry run has found; its job has a name only if it is begun."""
    job = found.job
    print(f"{f'job {job.job}' if send else 'dry run'}: {job.kind.value} dead letters of group {job.group}")
    print(f"conditions: {' '.join(job.conditions)}")
    for category, count in sorted(job.expected.items(), key=lambda item: -item[1]):
        examples = ", ".join(map(str, found.examples[category]))
        print(f"{count:>9}  {category:<18}{_meaning(Category(category), job)}")
        print(f"{'':>9}  {'':<18}e.g. {examples}")
    for topic, count in sorted(found.targets.items()):
        print(f"{count:>9}  records go to {topic}, at {job.rate:g} per second: about {count / job.rate:.0f} s")
    print(
        f"what was redriven or archived until {found.as_of:%Y-%m-%d %H:%M:%S} UTC is in the tables; what came later "
        "was read from the operations topic"
    )
    if not to_send(job):
        print(f"nothing was changed: none of them can be {DONE[job.kind].value}, for the reasons above")
        return
    if job.approval:
        print("another person has to approve it before it begins (redrive.approve_above, redrive.approve_edits)")
    if not send:
        print(f"nothing was changed: add {'--send' if job.reason.strip() else '--send and --reason TEXT'} to {aim}")


def _meaning(category: Category, job: Requested) -> str:
    option = next((name for name, allowing in _ALLOWING.items() if allowing is category), None)
    if job.replacement is not None and category is Category.ALREADY_REDRIVEN:
        option = None  # an edit is of a delivery that wasn't redriven meanwhile
    also = "" if option is None else f"; --{option.replace('_', '-')} redrives it all the same"
    return f"{MEANINGS[category]}{also}"


def resume_job(settings: Settings, name: str, *, send: bool) -> int:
    """Continue a job, if ``send`` says so; return the exit status."""
    tune_gc()
    progress = open_job(settings, name)
    job = progress.requested
    print(f"job {name}: {job.kind.value} dead letters of group {job.group}, {progress.state.value}")
    if progress.state is not State.AWAITING:
        if not send:
            print("nothing was changed: add --send to resume it")
            return 0
        progress = _run(settings, job, partial(_show_progress, job))
    _show_end(job, progress)
    return _code(job, progress)


def _run(settings: Settings, job: Requested, report: Callable[[Progress], None]) -> Progress:
    """Run a job until it ends; Ctrl-C pauses it."""
    stop = threading.Event()
    before = signal.signal(signal.SIGINT, lambda *_: stop.set())
    try:
        return Executor(settings, job, stop, report).run()
    finally:
        signal.signal(signal.SIGINT, before)


def _show_end(job: Requested, ended: Progress) -> None:
    if ended.state is State.AWAITING:
        print(f"job {job.job} awaits the approval of another person: waitreg dlq jobs approve {job.job} --reason TEXT")
        return
    print(f"\njob {job.job} is {ended.state.value}")
    for category, count in sorted(ended.counts.items(), key=lambda item: -item[1]):
        print(f"{count:>9}  {category}")
    if ended.state is State.PAUSED:
        print(f"to continue: waitreg dlq redrive --resume {job.job} --send")


def _code(job: Requested, ended: Progress) -> int:
    done = ended.counts[DONE[job.kind]]
    return 0 if ended.state is State.FINISHED and done == sum(ended.counts.values()) else 1


def _show_progress(job: Requested, progress: Progress) -> None:
    total = sum(job.expected.values())
    done = sum(progress.counts.values())
    print(f"\r{done} of {total} dead letters, {progress.counts[DONE[job.kind]]} {DONE[job.kind].value}", end="")
