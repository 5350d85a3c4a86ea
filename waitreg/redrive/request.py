"""What a person asks for, as a job: the selection, the options and who asks. Command and console have only this one."""

from __future__ import annotations

import os
import pwd
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Final, NamedTuple

from wait_registry.clock import SystemClock
from wait_registry.dead_letters.dead_letter import parse_place
from wait_registry.dead_letters.filter import Filter, parse_filter
from wait_registry.errors import ConfigurationError
from wait_registry.kafka.clients import admin
from wait_registry.records.operation import Kind, Replacement, Requested
from wait_registry.records.wait_id import is_wait_id
from wait_registry.settings.tree import Settings
from waitreg.redrive.exact_marks import exact_marks
from waitreg.redrive.job_decision import Category
from waitreg.redrive.job_listing import new_job
from waitreg.redrive.progress import ENDED, Progress
from waitreg.redrive.target import REDELIVERY

# A job looks for a pause, a cancellation and another rate before each record.
LEAST_RATE: Final = 0.01
_NAMED: Final = ("state", "place=", "wait_id=")


class Asker(NamedTuple):
    """Who asks for a job, whether that was checked, and by ``command`` or ``console``."""

    by: str
    authenticated: bool
    via: str


def asker_of_command() -> Asker:
    """Return who runs a command: the account of this process, which no variable of the environment changes."""
    return Asker(account(), authenticated=False, via="command")


def account() -> str:
    """Return the name of this process's real user, or its number if the system knows no name."""
    number = os.getuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:  # a container with a user of its own
        return f"uid {number}"


@dataclass(frozen=True, slots=True)
class Options:
    """How a job is done.

    Attributes:
        reason: why, for those who look later.
        target: ``redelivery``, the topic that only the group reads, or ``origin``, the input topic.
        rate: records per second; None takes that of the settings.
        limit: dead letters at most.
        allowed: categories that are sent all the same.
        canary: how many are sent first, before the others follow; None for no canary.
    """

    reason: str = ""
    target: str = REDELIVERY
    rate: float | None = None
    limit: int | None = None
    allowed: tuple[str, ...] = ()
    canary: int | None = None


def selection(which: Iterable[str], kind: Kind, allowed: Collection[str], now: datetime) -> Filter:
    """Read which dead letters are meant.

    Args:
        which: places, wait IDs and conditions.
        kind: what is done. Conditions mean only dead letters in a state for it, unless they say something else.
        allowed: categories that are sent all the same.
        now: what relative times are counted from.

    Raises:
        ConfigurationError: nothing is named, or a text can't be read.
    """
    texts = [_condition(text) for text in which]
    if not texts:
        raise ConfigurationError(
            "no dead letter is named: give places, wait IDs or conditions, e.g. group=payments since=2h"
        )
    if not any(text.startswith(_NAMED) for text in texts):
        again = Category.ALREADY_REDRIVEN in allowed
        texts.append({Kind.RESTORE: "state=archived"}.get(kind, "state!=archived" if again else "state=open"))
    return parse_filter(texts, now)


def only_group(groups: Collection[str | None], chosen: Filter) -> str:
    """Return the consumer group of the dead letters that a filter means.

    Args:
        groups: the groups of these dead letters; None if one names no group.
        chosen: the filter, for the message.

    Raises:
        ConfigurationError: there are none, or those of several groups, or of no group.
    """
    if not groups:
        ended = "; what was redriven or archived is not open" if "state=open" in map(str, chosen.conditions) else ""
        raise ConfigurationError(
            f"there is no dead letter with {chosen}{ended}: `waitreg dlq list` shows those there are"
        )
    group, *others = groups
    if others:
        names = ", ".join(sorted("none" if name is None else name for name in groups))
        raise ConfigurationError(
            f"dead letters of several groups are meant ({names}); a job is for one: add group=NAME"
        )
    if group is None:
        raise ConfigurationError("these dead letters name no consumer group, so there is none to redrive them to")
    return group


def new_request(
    kind: Kind, group: str, chosen: Filter, options: Options, asker: Asker, replacement: Replacement | None = None
) -> Requested:
    """Return the request of a new job, without the ends of its selection.

    Args:
        kind: what the job does.
        group: consumer group of the dead letters.
        chosen: which dead letters.
        options: how; with a rate.
        asker: who asks.
        replacement: the edited record that is sent in place of the only dead letter's own.
    """
    conditions = tuple(map(str, chosen.conditions))
    fixed: dict[str, Any] = {"kind": kind, "group": group, "conditions": conditions, "replacement": replacement}
    return Requested(job=new_job(), ends={}, **fixed, **asker._asdict(), **asdict(options))


def open_job(settings: Settings, name: str) -> Progress:
    """Return what a job is that hasn't ended, and how far it has come.

    Raises:
        ConfigurationError: there is no such job, or it has ended.
        TransientError, psycopg.Error: Kafka or Postgres is unavailable; retry.
    """
    with exact_marks(settings, admin(settings.kafka), SystemClock(), name) as marks:
        found = marks.tail.progress
    if found is None:
        raise ConfigurationError(f"there is no job {name!r}: `waitreg dlq jobs` lists them")
    if found.state in ENDED:
        raise ConfigurationError(f"job {name} is {found.state.value} already")
    return found


def require_rate(settings: Settings, rate: float) -> float:
    """Return a rate, records per second.

    Raises:
        ConfigurationError: it is less than one record in 100 s, or more than `redrive.max_rate`.
    """
    most = settings.redrive.max_rate
    if not LEAST_RATE <= rate <= most:
        raise ConfigurationError(
            f"the rate is {rate:g} per second, redrive.max_rate allows {most:g}, and the least is {LEAST_RATE:g}"
        )
    return rate


def _condition(text: str) -> str:
    if any(operator in text for operator in "=~<"):
        return text
    wait_id = text.strip().lower()
    return f"wait_id={wait_id}" if is_wait_id(wait_id) else f"place={parse_place(text)}"


def with_rate(settings: Settings, kind: Kind, options: Options) -> Options:
    """Return options with a rate: theirs if it is allowed, otherwise that of the settings; errors as `require_rate`."""
    if options.rate is not None:
        return replace(options, rate=require_rate(settings, options.rate))
    return replace(options, rate=settings.redrive.rate if kind is Kind.REDRIVE else settings.redrive.max_rate)
