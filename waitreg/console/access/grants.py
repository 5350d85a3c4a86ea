"""What a person may see and do, by consumer group and input topic: ``alice support payments* *``.

Nothing is allowed that no grant allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Final, NamedTuple

from psycopg import sql

from wait_registry.dead_letters.filter import like_pattern, matches
from wait_registry.errors import ConfigurationError

ALL: Final = "*"
GROUP: Final = "group:"


class Right(Enum):
    """What can be allowed, in the words of the page Help.

    ``FORCE`` is to redrive again, more often than the limit, what was finished late, or to the input topic. A record
    with another key, ``EDIT_KEY``, has another partition and another order.
    """

    VIEW = "see rows"
    INSPECT = "see what records contain"
    EXPORT = "download values"
    REDRIVE = "redrive"
    ARCHIVE = "archive and restore"
    EDIT = "edit a record"
    APPROVE = "approve jobs of others"
    REVEAL = "see what masks hide"
    BULK = "act on more than console.bulk_above dead letters"
    FORCE = "redrive what may have an effect twice or in other groups"
    EDIT_KEY = "edit a key"


_SUPPORT: Final = (Right.VIEW, Right.INSPECT)
_OPERATOR: Final = (*_SUPPORT, Right.EXPORT, Right.REDRIVE, Right.ARCHIVE, Right.APPROVE, Right.EDIT)
_ADMIN: Final = (*_OPERATOR, Right.REVEAL, Right.BULK, Right.FORCE, Right.EDIT_KEY)
ROLES: Final = {"viewer": (Right.VIEW,), "support": _SUPPORT, "operator": _OPERATOR, "admin": _ADMIN}


def role_with(rights: Iterable[Right]) -> str:
    """Return the least role that has these rights."""
    wanted = set(rights)
    return next(role for role, has in ROLES.items() if wanted <= set(has))


class Grant(NamedTuple):
    """A role for the consumer groups and input topics that match; an asterisk stands for any characters."""

    who: str
    rights: Sequence[Right]
    group: str = ALL
    topic: str = ALL


class Person(NamedTuple):
    """Who looks.

    Attributes:
        name: how they are called.
        grants: those that they have.
        authenticated: whether it was checked who they are.
        has_session: whether they have a session that they can end.
        bulk_above: a job of more dead letters needs the right to that; None if none does.
    """

    name: str
    grants: tuple[Grant, ...]
    authenticated: bool = True
    has_session: bool = False
    bulk_above: int | None = None

    def may(self, right: Right, group: str | None, topic: str | None) -> bool:
        """Return whether they have a right to what has this group and topic; None is matched by an asterisk alone."""
        return any(_matches(group, one[0]) and _matches(topic, one[1]) for one in self.pairs(right))

    def pairs(self, right: Right) -> tuple[tuple[str, str], ...]:
        """Return the patterns of group and topic that they have a right to."""
        return tuple(dict.fromkeys((grant.group, grant.topic) for grant in self.grants if right in grant.rights))

    def limits(self) -> str:
        """Return a sentence that says which rows they see; "" if they see all."""
        if self.sees_all():
            return ""
        pairs = self.pairs(Right.VIEW)
        seen = "; ".join(f"{_named('group', group)}, {_named('topic', topic)}" for group, topic in pairs)
        return f"You see only: {seen}."

    def sees_all(self) -> bool:
        """Return whether they may see all rows."""
        return (ALL, ALL) in self.pairs(Right.VIEW)

    def inspects_all(self) -> bool:
        """Return whether they may see what each record contains that they may see at all."""
        inspected = self.pairs(Right.INSPECT)
        return (ALL, ALL) in inspected or set(self.pairs(Right.VIEW)) <= set(inspected)


def parse_grants(texts: Iterable[str]) -> list[Grant]:
    """Read grants: who, a role, and patterns of group and topic, which are ``*`` by default.

    Who is a name, ``group:`` and a group that the proxy names, or ``*`` for everybody who is known.

    Raises:
        ConfigurationError: a grant can't be read.
    """
    return [_parse(text) for text in texts]


def person(name: str, groups: Iterable[str], grants: Iterable[Grant]) -> Person:
    """Return a person with the grants to their name, to their groups and to everybody."""
    known_as = {ALL, *(f"{GROUP}{group}" for group in groups)}
    if not name.startswith(GROUP):
        known_as.add(name)
    return Person(name, tuple(grant for grant in grants if grant.who in known_as))


def groups_named(grants: Iterable[Grant]) -> set[str]:
    """Return the groups of people that any grant is to."""
    return {grant.who.removeprefix(GROUP) for grant in grants if grant.who.startswith(GROUP)}


def condition(pairs: Sequence[tuple[str, str]]) -> sql.Composable:
    """Return the condition on consumer_group and original_topic that rows with these patterns meet."""
    pieces = [
        sql.SQL(" and ").join(
            sql.SQL("{} like {}").format(sql.Identifier(column), sql.Literal(like_pattern(pattern)))
            for column, pattern in zip(("consumer_group", "original_topic"), pair, strict=True)
            if pattern != ALL
        )
        for pair in pairs
    ]
    return sql.SQL(" or ").join(sql.SQL("({})").format(piece) for piece in pieces) if pieces else sql.SQL("false")


def _parse(text: str) -> Grant:
    words = text.split()
    if not 2 <= len(words) <= 4 or words[1] not in ROLES:
        raise ConfigurationError(
            f"console.grants: {text!r} is no grant: expected WHO ROLE [GROUP [TOPIC]], e.g. "
            f"'alice support payments* *'; roles are {', '.join(ROLES)}"
        )
    who, role, *patterns = words
    return Grant(who, ROLES[role], *patterns)


def _named(what: str, pattern: str) -> str:
    return f"all {what}s" if pattern == ALL else f"{what} {pattern}"


def _matches(text: str | None, pattern: str) -> bool:
    return pattern == ALL or (text is not None and matches(text, pattern))
