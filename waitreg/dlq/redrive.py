"""`waitreg dlq redrive|archive|restore`: what a job would do, and with --send the job."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from wait_registry.errors import ConfigurationError
from wait_registry.records.operation import Kind, Requested, State
from waitreg.command import Command, Invocation
from waitreg.redrive.approval import needs_approval, to_send
from waitreg.redrive.category import DONE, MEANINGS, Category
from waitreg.redrive.request import Options, asker_of_command, dry_run, open_job, selection
from waitreg.redrive.target import ORIGIN, REDELIVERY

if TYPE_CHECKING:
    from wait_registry.settings.root import Settings
    from waitreg.redrive.progress import Progress
    from waitreg.redrive.survey import Survey

_COUNT: Final = click.IntRange(1, 1_000_000_000)
_ALLOWING: Final = {
    "may_be_done": Category.MAY_BE_DONE,
    "finished_late": Category.FINISHED_LATE,
    "again": Category.ALREADY_REDRIVEN,
    "over_max": Category.MAX_REDRIVES,
    "without_members": Category.NO_MEMBERS,
}


def _job_options(function: Callable[..., int]) -> Callable[..., int]:
    for option in reversed(
        (
            click.argument("which", metavar="[PLACE|WAIT-ID|CONDITION]...", nargs=-1),
            click.option(
                "--reason", default="", metavar="TEXT", help="Why, for those who look later. --send needs it."
            ),
            click.option("--limit", type=_COUNT, metavar="N", help="End after N dead letters."),
            click.option("--send", is_flag=True, help="Do it; without this nothing is changed."),
            click.option("--json", "as_json", is_flag=True, help="Print one JSON object: the dry run, or the result."),
        )
    ):
        function = option(function)
    return function


@click.command(
    "redrive",
    cls=Command,
    extra="query",
    examples=(
        "waitreg dlq redrive orders.dlq:0:17",
        "waitreg dlq redrive group=payments 'error=*Timeout*' since=2h --rate 50 --send --reason 'service is back'",
        "waitreg dlq redrive --resume 3f2a9c4e7b10 --send",
    ),
)
@_job_options
@click.option("--rate", type=click.FloatRange(0.01), metavar="N", help="Records per second; see redrive.rate.")
@click.option(
    "--to",
    type=click.Choice([REDELIVERY, ORIGIN]),
    default=REDELIVERY,
    show_default=True,
    help="The topic that only the group reads, or the input topic, which other groups may read as well.",
)
@click.option("--may-be-done", is_flag=True, help="Also expired ones, whose work may have been done.")
@click.option("--finished-late", is_flag=True, help="Also those whose work was done after the deadline.")
@click.option("--again", is_flag=True, help="Also those that were redriven before.")
@click.option("--over-max", is_flag=True, help="Also those redriven redrive.max_redrives times.")
@click.option("--without-members", is_flag=True, help="Also if the group has no member now.")
@click.option(
    "--canary",
    type=_COUNT,
    metavar="N",
    help="Send N, and the others only if hardly any of these come back.",
)
@click.option("--resume", metavar="JOB", help="Continue a job that was stopped or paused.")
@click.pass_obj
def redrive(invocation: Invocation, /, which: tuple[str, ...], to: str, resume: str | None, **given: Any) -> int:
    """Send dead letters again, to be handled by their group.

    Without --send, this shows what would be done with each dead letter, and nothing is sent. Each delivery is sent
    once, whatever fails meanwhile and whichever other operators redrive it: records and marks are one transaction. All
    dead letters must be of one consumer group. Ctrl-C pauses the job. More than redrive.approve_above dead letters
    await the approval of another person. Ends with 1 if some were not redriven.
    """
    settings = invocation.settings()
    if resume is not None:
        if which:
            raise ConfigurationError("a job that is resumed has its own conditions: give none")
        if given["as_json"]:
            raise ConfigurationError("--json is for a new job; `waitreg dlq jobs list --json` shows the resumed one")
        return _resume(settings, resume, given["send"])
    options = Options(given["reason"], to, given["rate"], given["limit"], allowed(given), given["canary"])
    return _job(settings, Kind.REDRIVE, which, options, send=given["send"], as_json=given["as_json"])


@click.command(
    "merge",
    cls=Command,
    extra="query",
    examples=("waitreg dlq merge orders.dlq --rate 50 --send --reason 'service is back'",),
)
@click.argument("topics", metavar="DLQ-TOPIC...", nargs=-1, required=True)
@click.option("--reason", default="", metavar="TEXT", help="Why, for those who look later. --send needs it.")
@click.option("--rate", type=click.FloatRange(0.01), metavar="N", help="Records per second; see redrive.rate.")
@click.option("--send", is_flag=True, help="Do it; without this nothing is changed.")
@click.pass_context
def merge(context: click.Context, /, topics: tuple[str, ...], **given: Any) -> int:
    """Redrive everything that is open in dead letter topics; `waitreg dlq redrive dlq=TOPIC` has more options."""
    result: int = context.invoke(redrive, which=tuple(f"dlq={topic}" for topic in topics), as_json=False, **given)
    return result


@click.command(
    "archive",
    cls=Command,
    extra="query",
    examples=("waitreg dlq archive group=payments error=ValueError --reason 'test orders' --send",),
)
@_job_options
@click.pass_obj
def archive(
    invocation: Invocation, which: tuple[str, ...], reason: str, limit: int | None, send: bool, as_json: bool
) -> int:
    """Mark dead letters as no longer wanted. Nothing is deleted; `waitreg dlq restore` takes it back."""
    return _job(invocation.settings(), Kind.ARCHIVE, which, Options(reason, limit=limit), send=send, as_json=as_json)


@click.command(
    "restore",
    cls=Command,
    extra="query",
    examples=("waitreg dlq restore group=payments state=archived --send --reason 'still wanted'",),
)
@_job_options
@click.pass_obj
def restore(
    invocation: Invocation, which: tuple[str, ...], reason: str, limit: int | None, send: bool, as_json: bool
) -> int:
    """Mark archived dead letters as open again."""
    return _job(invocation.settings(), Kind.RESTORE, which, Options(reason, limit=limit), send=send, as_json=as_json)


def _job(settings: Settings, kind: Kind, which: tuple[str, ...], options: Options, *, send: bool, as_json: bool) -> int:
    require_reason(options.reason, send=send)
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


def begin(settings: Settings, found: Survey, aim: str, *, send: bool, as_json: bool = False) -> int:
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
    from waitreg.redrive.job_change import ask_for_approval

    awaits = needs_approval(settings.redrive, found.job)
    if as_json:
        return _begin_for_scripts(settings, found, awaits=awaits, send=send)
    show_survey(found, send=send)
    if not to_send(found.job):
        print(f"nothing was changed: none of them can be {DONE[found.job.kind].value}, for the reasons above")
        return 1
    if awaits:
        print("another person has to approve it before it begins (redrive.approve_above, redrive.approve_edits)")
    if not send:
        missing = "--send" if found.job.reason.strip() else "--send and --reason TEXT"
        print(f"nothing was changed: add {missing} to {aim}")
        return 0
    if not awaits:
        return execute(settings, found.job)
    ask_for_approval(settings, found.job)
    return _awaits(found.job)


def _begin_for_scripts(settings: Settings, found: Survey, *, awaits: bool, send: bool) -> int:
    """As `begin`, with one JSON object on standard output."""
    from waitreg.redrive.job_change import ask_for_approval

    job, acted = found.job, to_send(found.job)
    shown: dict[str, object] = {
        "kind": job.kind.value,
        "group": job.group,
        "conditions": list(job.conditions),
        "counts": job.expected,
        "targets": dict(found.targets),
        "awaits_approval": awaits,
        "sent": bool(send and acted and not awaits),
    }
    code = 0 if acted else 1
    if send and acted and awaits:
        ask_for_approval(settings, job)
        shown, code = {"job": job.job, **shown}, 1
    elif send and acted:
        ended = run(settings, job, lambda _: None)
        shown = {"job": job.job, **shown, "state": ended.state.value, "counts": dict(ended.counts)}
        code = _code(job, ended)
    print(json.dumps(shown, ensure_ascii=False))
    return code


def allowed(given: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the categories that options of a command allow."""
    return tuple(sorted(category.value for name, category in _ALLOWING.items() if given.get(name)))


def show_survey(found: Survey, *, send: bool) -> None:
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


def _meaning(category: Category, job: Requested) -> str:
    option = next((name for name, allowing in _ALLOWING.items() if allowing is category), None)
    if job.replacement is not None and category is Category.ALREADY_REDRIVEN:
        option = None  # an edit is of a delivery that wasn't redriven meanwhile
    also = "" if option is None else f"; --{option.replace('_', '-')} redrives it all the same"
    return f"{MEANINGS[category]}{also}"


def _resume(settings: Settings, name: str, send: bool) -> int:
    job, progress = open_job(settings, name)
    print(f"job {name}: {job.kind.value} dead letters of group {job.group}, {progress.state.value}")
    if progress.state is State.AWAITING:
        return _awaits(job)
    if not send:
        print("nothing was changed: add --send to resume it")
        return 0
    return execute(settings, job)


def _awaits(job: Requested) -> int:
    print(f"job {job.job} awaits the approval of another person: waitreg dlq jobs approve {job.job} --reason TEXT")
    return 1


def run(settings: Settings, job: Requested, report: Callable[[Progress], None]) -> Progress:
    """Run a job until it ends; Ctrl-C pauses it."""
    import signal

    from waitreg.redrive.executor import Executor

    stop = threading.Event()
    before = signal.signal(signal.SIGINT, lambda *_: stop.set())
    try:
        return Executor(settings, job, stop, report).run()
    finally:
        signal.signal(signal.SIGINT, before)


def execute(settings: Settings, job: Requested) -> int:
    """Run a job and print how it ended. Return 0 if it acted on all its dead letters."""
    ended = run(settings, job, partial(_show_progress, job))
    print(f"\njob {job.job} is {ended.state.value}")
    for category, count in sorted(ended.counts.items(), key=lambda item: -item[1]):
        print(f"{count:>9}  {category}")
    if ended.state is State.AWAITING:
        return _awaits(job)
    if ended.state is State.PAUSED:
        print(f"to continue: waitreg dlq redrive --resume {job.job} --send")
    return _code(job, ended)


def _code(job: Requested, ended: Progress) -> int:
    done = ended.counts[DONE[job.kind]]
    return 0 if ended.state is State.FINISHED and done == sum(ended.counts.values()) else 1


def _show_progress(job: Requested, progress: Progress) -> None:
    total = sum(job.expected.values())
    done = sum(progress.counts.values())
    print(f"\r{done} of {total} dead letters, {progress.counts[DONE[job.kind]]} {DONE[job.kind].value}", end="")
