"""Which dead letters are meant: conditions such as ``group=payments reason=failed since=2h``.

The command, the address of a page and the record of what an operator did have the same text, and this is its only
parser. Conditions on different fields must all hold. Of several ``=`` and ``~`` conditions on the same field, one is
enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from enum import Enum
from fnmatch import fnmatchcase
from glob import escape
from typing import Any, Final, NamedTuple, TypeAlias

from wait_registry.errors import ConfigurationError
from wait_registry.records.delays import parse_delay
from wait_registry.records.times import parse_utc

Value: TypeAlias = str | int | bytes | datetime
# Postgres has no larger bigint.
_MOST: Final = 2**63 - 1
_CONDITION: Final = re.compile(r"([a-z_]*)(!=|>=|=|~|<)(.*)", re.DOTALL)


class Kind(Enum):
    """What the values of a field are."""

    TEXT = "text"
    NUMBER = "number"
    BYTES = "bytes"
    TIME = "time"
    JOB = "job"


OPERATORS: Final[Mapping[Kind, tuple[str, ...]]] = {
    Kind.TEXT: ("=", "!=", "~"),
    Kind.NUMBER: ("=", "!=", ">=", "<"),
    Kind.BYTES: ("=", "!="),
    Kind.TIME: ("=",),
    Kind.JOB: ("=",),
}


class Field(NamedTuple):
    """A field: its SQL expression on the table dead_letter, what its values are, and what it means.

    ``equals`` is the condition for one exact value, where the plain one would use no index. ``values`` are all that
    there are, if these are known.
    """

    sql: str
    kind: Kind
    meaning: str
    equals: str = ""
    values: tuple[str, ...] = ()


def _equals_by_beginning(column: str) -> str:
    """Return the condition on a text of which an index has the first 250 characters.

    The rest is compared only if the value has one: of two conditions Postgres expects far fewer rows than there are.
    """
    return f"left({column}, 250) = left(%s, 250) and (length(%s) < 250 or {column} = %s)"


FIELDS: Final[Mapping[str, Field]] = {
    "group": Field(
        "consumer_group",
        Kind.TEXT,
        "consumer group",
        _equals_by_beginning("consumer_group"),
    ),
    "topic": Field("original_topic", Kind.TEXT, "input topic"),
    "partition": Field("original_partition", Kind.NUMBER, "partition of the input topic"),
    "offset": Field("original_offset", Kind.NUMBER, "offset in the input topic"),
    "dlq": Field("topic", Kind.TEXT, "dead letter topic"),
    "state": Field("state", Kind.TEXT, "open, redriven or archived", values=("open", "redriven", "archived")),
    "place": Field(
        """topic || ':' || partition || ':' || "offset\"""",
        Kind.TEXT,
        "place of the dead letter, topic:partition:offset",
        # More digits than a partition or an offset has would be an error of Postgres.
        "topic = substring(%s from '^(.*):[0-9]{1,9}:[0-9]{1,18}$')"
        " and partition = substring(%s from ':([0-9]{1,9}):[0-9]{1,18}$')::int"
        """ and "offset" = substring(%s from ':[0-9]{1,9}:([0-9]{1,18})$')::bigint""",
    ),
    "reason": Field(
        "coalesce(reason, 'foreign')", Kind.TEXT, "failed, expired, blocked, unregistrable, malformed or foreign"
    ),
    "error": Field("error_class", Kind.TEXT, "class of the error", _equals_by_beginning("error_class")),
    "message": Field("error_message", Kind.TEXT, "message of the error"),
    "key": Field(
        "key",
        Kind.BYTES,
        r"key of the record: text, or \x and hexadecimal digits",
        "substring(key from 1 for 64) = substring(%s from 1 for 64) and key = %s",
    ),
    "instance": Field("instance", Kind.TEXT, "processor instance"),
    "delivery": Field("delivery", Kind.NUMBER, "which delivery of the record failed, the first is 1"),
    "wait_id": Field("wait_expiration_uuid", Kind.TEXT, "wait ID"),
    "job": Field("job", Kind.TEXT, "job that redrove, archived or restored it last"),
    "again_of": Field(
        "",
        Kind.JOB,
        "job that redrove the record before it failed again",
        # As `dead_again` in sql/dead_letters.sql.
        "exists (select from dead_letter_mark as mark where mark.job = %s and mark.kind = 'redrive'"
        " and mark.original_offset = dead_letter.original_offset"
        " and mark.original_partition = dead_letter.original_partition"
        " and mark.original_topic = dead_letter.original_topic"
        " and mark.consumer_group = dead_letter.consumer_group"
        " and (mark.next_wait_id = dead_letter.wait_expiration_uuid or mark.delivery < dead_letter.delivery))",
    ),
    "idempotency_key": Field(
        "idempotency_key",
        Kind.TEXT,
        "idempotency key",
        "(wait_expiration_uuid = %s and idempotency_key = %s)"
        " or (idempotency_key = %s and idempotency_key <> wait_expiration_uuid)",
    ),
    "since": Field("dead_letter_time >= %s", Kind.TIME, "not before: 2h, 7d or an ISO 8601 time"),
    "before": Field("dead_letter_time < %s", Kind.TIME, "before: 2h, 7d or an ISO 8601 time"),
}


class Condition(NamedTuple):
    """One condition. In a text, ``*`` stands for any characters; ``\\*`` is an asterisk, ``\\\\`` a backslash."""

    field: str
    operator: str
    value: Value

    def __str__(self) -> str:
        """Return it as it is typed."""
        return f"{self.field}{self.operator}{_typed(self.value)}"


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions, each once."""

    conditions: tuple[Condition, ...] = ()

    def __str__(self) -> str:
        """Return the conditions as they are typed, with absolute times; separated by spaces, for people to read."""
        return " ".join(map(str, self.conditions))

    @property
    def fields(self) -> set[str]:
        """Return the fields that have conditions."""
        return {one.field for one in self.conditions}

    def only(self, field: str, values: Iterable[str]) -> Filter:
        """Return the filter with these exact values in place of its = and ~ conditions on a text field.

        Args:
            field: a field of texts.
            values: of which one must hold. Values that dead letters of this filter have make it narrower, never wider.
        """
        kept = (one for one in self.conditions if one.field != field or one.operator not in ("=", "~"))
        return Filter((*kept, *(Condition(field, "=", literal(value)) for value in values)))

    def exact_values(self, field: str) -> tuple[str, ...]:
        """Return the values of which a text field must have one; none if the filter leaves others possible."""
        conditions = [one for one in self.conditions if one.field == field and one.operator in ("=", "~")]
        values = [one.value for one in conditions if one.operator == "=" and not _has_wildcard(one.value)]
        texts = tuple(_unescaped(value) for value in values if isinstance(value, str))
        return texts if len(texts) == len(conditions) else ()

    def sql(self) -> tuple[str, list[Value]]:
        """Return a condition on rows of dead_letter for psycopg, and its parameters; a value is never in the text."""
        texts: list[str] = []
        parameters: list[Value] = []
        alternatives: dict[str, list[Condition]] = {}
        for condition in self.conditions:
            if condition.operator in ("=", "~") and FIELDS[condition.field].kind is not Kind.TIME:
                alternatives.setdefault(condition.field, []).append(condition)
            else:
                alternatives[str(condition)] = [condition]
        for conditions in alternatives.values():
            pieces = [_sql(condition) for condition in conditions]
            texts.append(f"({' or '.join(pieces)})")
            for condition, piece in zip(conditions, pieces, strict=True):
                parameters += [_parameter(condition)] * piece.count("%s")
        return " and ".join(texts) or "true", parameters

    def within(self, query: str) -> tuple[str, list[Any]]:
        """Return a query with these conditions in the place of ``{where}``, and their parameters."""
        where, parameters = self.sql()
        return query.replace("{where}", where), parameters


def parse_filter(texts: Iterable[str], now: datetime) -> Filter:
    """Read conditions.

    Args:
        texts: one condition each, such as ``error=*Timeout*``.
        now: what relative times are counted from.

    Raises:
        ConfigurationError: a condition can't be read; the message says what was expected.
    """
    return Filter(tuple(dict.fromkeys(_parse(text, now) for text in texts)))


def _parse(text: str, now: datetime) -> Condition:
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise ConfigurationError(
            f"{text!r} is no condition, such as key=order-17, group=payments, error=*Timeout* or since=2h"
        )
    name, operator, value = match.groups()
    field = FIELDS.get(name)
    if field is None:
        near = get_close_matches(name, FIELDS, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise ConfigurationError(f"{text!r}: there is no field {name!r}; {hint}There are {', '.join(FIELDS)}")
    if operator not in (taken := OPERATORS[field.kind]):
        raise ConfigurationError(f"{text!r}: {name} takes {' '.join(taken)}, not {operator}")
    read = _value(field.kind, text, value, now)
    if field.values and not any(value in one if operator == "~" else matches(one, value) for one in field.values):
        raise ConfigurationError(f"{text!r}: there is no {name} {value!r}; there are {', '.join(field.values)}")
    return Condition(name, operator, read)


def _value(kind: Kind, text: str, value: str, now: datetime) -> Value:
    if not value:
        raise ConfigurationError(f"{text!r} has no value: leave the condition out, or give one")
    try:
        if kind is Kind.NUMBER:
            return _number(value)
        if kind is Kind.TIME:
            return _time(value, now)
        if kind is Kind.BYTES:
            return bytes.fromhex(value[2:]) if value.startswith("\\x") else value.encode()
        value.encode()  # lone surrogates stand for bytes that aren't UTF-8
        if "\0" in value:
            raise ValueError
    except ValueError:
        expected = {
            Kind.TEXT: "text without NUL, in UTF-8",
            Kind.JOB: "the name of a job",
            Kind.NUMBER: "a whole number, from 0 on",
            Kind.TIME: "a time ago (10m, 2h, 7d) or an ISO 8601 time (2026-11-27T08:00Z)",
            Kind.BYTES: r"text, or \x and an even number of hexadecimal digits",
        }
        raise ConfigurationError(f"{text!r}: expected {expected[kind]}") from None
    return value


def _number(value: str) -> int:
    if re.fullmatch(r"[0-9]{1,19}", value) is None or int(value) > _MOST:
        raise ValueError
    return int(value)


def _time(value: str, now: datetime) -> datetime:
    try:
        return now - timedelta(seconds=parse_delay(value))
    except (ValueError, OverflowError):
        moment = parse_utc(value)
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError from None


def _typed(value: Value) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, bytes):
        try:
            text = value.decode()
        except UnicodeDecodeError:
            text = ""
        return text if text.isprintable() and text and not text.startswith("\\x") else f"\\x{value.hex()}"
    return str(value)


def _sql(condition: Condition) -> str:
    field, operator = FIELDS[condition.field], condition.operator
    if field.kind is Kind.TIME:
        return field.sql
    if operator == "~":
        return f"strpos({field.sql}, %s) > 0"
    if field.kind is Kind.TEXT and _has_wildcard(condition.value):
        return f"{field.sql} like %s" if operator == "=" else f"{field.sql} like %s is not true"
    if operator == "=" and field.equals:
        return f"({field.equals})"
    return f"{field.sql} {'is distinct from' if operator == '!=' else operator} %s"


def _parameter(condition: Condition) -> Value:
    value = condition.value
    if FIELDS[condition.field].kind is not Kind.TEXT or condition.operator == "~" or not isinstance(value, str):
        return value
    if not _has_wildcard(value):
        return _unescaped(value)
    return like_pattern(value)


def like_pattern(pattern: str) -> str:
    """Return the pattern for SQL's like of a text in which an asterisk stands for any characters."""
    return "".join("%" if part == "*" else _SIGN.sub(r"\\\g<0>", part[-1]) for part in _PARTS.findall(pattern))


def literal(text: str) -> str:
    """Return the pattern that this text alone has."""
    return text.replace("\\", "\\\\").replace("*", "\\*")


def matches(text: str, pattern: str) -> bool:
    """Return whether a text has a pattern in which an asterisk stands for any characters."""
    return fnmatchcase(text, "".join(part if part == "*" else escape(part[-1]) for part in _PARTS.findall(pattern)))


_PARTS: Final = re.compile(r"\\[*\\]|.", re.DOTALL)
# What means something in a pattern of SQL.
_SIGN: Final = re.compile(r"[%_\\]")


def _has_wildcard(value: Value) -> bool:
    return isinstance(value, str) and "*" in _PARTS.findall(value)


def _unescaped(pattern: str) -> str:
    return "".join(part[-1] for part in _PARTS.findall(pattern))
