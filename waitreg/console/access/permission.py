"""What a person may do with dead letters: the part of a selection that they may act on, and the jobs that they may run.

Only this module makes a `Selection` or a `Permission`, and without one the console makes no dry run, and starts and
changes no job. Both are made of the group and the topics of every dead letter, not of what a page shows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from wait_registry.dead_letters.dead_letter import DeadLetter
from wait_registry.dead_letters.filter import Filter, parse_filter
from wait_registry.records.operation import Kind, Place, Replacement, Requested
from waitreg.console.access.grants import Person, Right, role_with
from waitreg.console.refusals import NotAllowed
from waitreg.redrive.approval import to_send
from waitreg.redrive.job_decision import Category
from waitreg.redrive.request import Asker, only_group
from waitreg.redrive.target import ORIGIN

_OF_KIND: Final = {Kind.REDRIVE: Right.REDRIVE, Kind.ARCHIVE: Right.ARCHIVE, Kind.RESTORE: Right.ARCHIVE}
FORCED: Final = frozenset((Category.ALREADY_REDRIVEN, Category.FINISHED_LATE, Category.MAX_REDRIVES))


@dataclass(frozen=True, slots=True)
class Selection:
    """Dead letters of one group that a person may act on, and no others; ``narrowed`` if more were meant."""

    person: Person
    kind: Kind
    chosen: Filter
    narrowed: bool = False


@dataclass(frozen=True, slots=True)
class Permission:
    """A person may start, pause, resume and cancel this job."""

    person: Person
    job: Requested


@dataclass(frozen=True, slots=True)
class Reveal:
    """A person may be shown what is hidden of a dead letter, once their reason is recorded."""

    person: Person
    place: Place
    group: str | None


def group_and_topic(dead_letter: DeadLetter) -> tuple[str | None, str | None]:
    """Return what rights to a dead letter depend on: its consumer group and the input topic of its record."""
    return dead_letter.row["consumer_group"], dead_letter.row["original_topic"]


def asker(person: Person) -> Asker:
    """Return the person as the one who asks for a job."""
    return Asker(person.name, person.authenticated, via="console")


def rights(kind: Kind, allowed: Iterable[str] = (), target: str = "") -> tuple[Right, ...]:
    """Return the rights that a job needs."""
    forced = target == ORIGIN or not FORCED.isdisjoint(allowed)
    return (_OF_KIND[kind], Right.FORCE) if forced else (_OF_KIND[kind],)


def edit_rights(replacement: Replacement | None) -> tuple[Right, ...]:
    """Return the rights that a job needs for the edited record that it sends, if it sends one."""
    if replacement is None:
        return ()
    return (Right.EDIT, Right.EDIT_KEY) if replacement.new_key else (Right.EDIT,)


def lacking(person: Person, needed: Iterable[Right], group: str | None, topic: str | None) -> str:
    """Return which role a person needs to act on what has this group and topic; "" if they may."""
    needed = tuple(needed)
    return "" if all(person.may(right, group, topic) for right in needed) else role_with(needed)


def select(
    person: Person, kind: Kind, chosen: Filter, needed: Collection[Right], found: Collection[tuple[str | None, ...]]
) -> Selection:
    """Return the part of a selection that a person may act on.

    Args:
        person: who asks.
        kind: what is to be done.
        chosen: which dead letters are meant.
        needed: the rights that it needs.
        found: group and input topic of all that are meant and that the person may see.

    Raises:
        NotAllowed: the person may act on none of them.
        ConfigurationError: there are none, or they are of several groups.
    """
    group = only_group({pair[0] for pair in found}, chosen)
    of_group = chosen.only("group", [group])
    role = lacking(person, needed, group, None)
    if not role:
        return Selection(person, kind, of_group)
    topics = sorted(topic for _, topic in found if topic is not None and not lacking(person, needed, group, topic))
    if not topics:
        raise NotAllowed(f"To {kind.value} these dead letters of group {group}, you need the role {role}.")
    return Selection(person, kind, of_group.only("topic", topics), narrowed=len(topics) < len(found))


def role_missing(person: Person, job: Requested, *more: Right) -> str:
    """Return the role that a person needs for a job, its group and all topics of its dead letters; "" if they may.

    Args:
        person: who acts.
        job: what was asked for.
        more: rights that are needed besides those to run the job.
    """
    bulk = (Right.BULK,) if _is_bulk(person, job) else ()
    needed = (*rights(job.kind, job.allowed, job.target), *edit_rights(job.replacement), *more, *bulk)
    conditions = parse_filter(job.conditions, datetime.now(UTC))
    topics: Iterable[str | None] = conditions.exact_values("topic") or (None,)
    return next(filter(None, (lacking(person, needed, job.group, topic) for topic in topics)), "")


def permit(person: Person, job: Requested, *more: Right) -> Permission:
    """Return the permission to run a job; arguments as `role_missing`.

    Raises:
        NotAllowed: the person may not.
    """
    role = role_missing(person, job, *more)
    if role:
        many = f" It is about {to_send(job)} dead letters (console.bulk_above)." if _is_bulk(person, job) else ""
        raise NotAllowed(f"For this job of group {job.group}, you need the role {role} for all that it is about.{many}")
    return Permission(person, job)


def _is_bulk(person: Person, job: Requested) -> bool:
    return person.bulk_above is not None and to_send(job) > person.bulk_above


def approval_obstacle(person: Person, job: Requested) -> str:
    """Return why a person can't approve a job, whatever their role is; "" if it depends on the role."""
    if not person.authenticated:
        return "Only people whose names the console checks can approve it (console.authentication)."
    return "You asked for it, so another person has to approve it." if person.name == job.by else ""


def permit_approval(person: Person, job: Requested) -> Permission:
    """Return the permission to approve and run a job of another person.

    Raises:
        NotAllowed: the person may not.
    """
    if obstacle := approval_obstacle(person, job):
        raise NotAllowed(obstacle)
    return permit(person, job, Right.APPROVE)


def reveal_obstacle(person: Person, dead_letter: DeadLetter, right: Right = Right.REVEAL) -> str:
    """Return why a person can't be shown what is hidden of a dead letter; "" if they can.

    Args:
        person: who wants to see it.
        dead_letter: the dead letter.
        right: what shows it, `Right.INSPECT` if masks hide nothing of it.
    """
    role = lacking(person, [right], *group_and_topic(dead_letter))
    if role:
        return f"To be shown what is hidden, you need the role {role}."
    return "" if person.authenticated else "Only people whose names the console checks can be shown what is hidden."


def permit_reveal(person: Person, dead_letter: DeadLetter) -> Reveal:
    """Return the permission to be shown what is hidden of a dead letter.

    Raises:
        NotAllowed: the person may not.
    """
    if obstacle := reveal_obstacle(person, dead_letter):
        raise NotAllowed(obstacle)
    return Reveal(person, dead_letter.place, dead_letter.row["consumer_group"])


def may_follow(person: Person, job: Requested) -> bool:
    """Return whether a person may see a job: one of a group that they see whole, or their own."""
    own = (job.by, job.authenticated, job.via) == asker(person)
    return own or person.may(Right.VIEW, job.group, None)
