"""Every setting: its name as each source spells it, its type, bounds and default; the nearest to an unknown name."""

from __future__ import annotations

import ast
import difflib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, Final, Literal, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from wait_registry.settings.tree import Settings

PREFIX = "WAITREG_"
DELIMITER = "__"
FROM_FILE_SUFFIX = "_file"

# Long or secret texts may be in a file: the setting's name with `_file` takes its path.
FROM_FILE = frozenset(
    {
        "postgres.url",
        "kafka.security.password",
        "kafka.security.ca",
        "kafka.security.certificate",
        "kafka.security.key",
        "alerts.webhook.url",
        "processor.grpc.ca",
        "processor.grpc.certificate",
        "processor.grpc.key",
        "processor.schema_registry.password",
        "connect.password",
        "connect.ca",
        "console.oidc.client_secret",
        "console.signing_key",
    }
)

_TYPES: Final = {int: "whole number", float: "number", bool: "true or false", SecretStr: "secret"}
_UNITS: Final = {"_ms": " ms", "_s": " s", "_bytes": " bytes", "_days": " days"}
_BOUNDS: Final = {
    "ge": ">= {}{}",
    "gt": "> {}{}",
    "le": "<= {}{}",
    "lt": "< {}{}",
    "min_length": "not empty",
    "max_length": "{} or fewer characters",
    "pattern": "like {}",
}


@dataclass(frozen=True, slots=True)
class SettingName:
    """One setting: ``name`` is dotted, as on the command line; a table takes keys of any name.

    ``attribute`` is its name in ``model``.
    """

    name: str
    field: FieldInfo
    model: type[BaseModel]
    attribute: str

    @property
    def description(self) -> str:
        """What it is, in words."""
        return _descriptions(self.model)[self.attribute]

    @property
    def is_table(self) -> bool:
        """Whether the value is a table of others' names (client properties)."""
        return get_origin(self.field.annotation) is dict

    @property
    def is_list(self) -> bool:
        """Whether the value is a list."""
        return get_origin(self.field.annotation) is tuple

    @property
    def is_secret(self) -> bool:
        """Whether the value must never be shown."""
        return self.holds_secret or self.name in FROM_FILE

    @property
    def holds_secret(self) -> bool:
        """Whether the value is a password or key; certificates are masked only because they are long."""
        return SecretStr in _members(self.field)

    @property
    def kind(self) -> str:
        """The type of the value, in words."""
        if self.is_table:
            return "table"
        names = " or ".join(_type_name(member) for member in _members(self.field) if member not in (type(None), ...))
        return f"list of {names}" if self.is_list else names

    @property
    def bounds(self) -> str:
        """The bounds of the value, with its unit; empty if it has none."""
        unit = next((unit for suffix, unit in _UNITS.items() if self.name.endswith(suffix)), "")
        rules = [*self.field.metadata, *_rules_of_members(self.field)]
        limits = ((text, getattr(rule, name, None)) for rule in rules for name, text in _BOUNDS.items())
        return ", ".join(text.format(limit, unit) for text, limit in limits if limit is not None)

    @property
    def default(self) -> str:
        """The default as it is written in a source; empty if there is none."""
        value = self.field.default
        if isinstance(value, tuple):
            return f"[{', '.join(map(str, value))}]" if value else ""
        if isinstance(value, SecretStr):
            return value.get_secret_value()
        return "" if value is None or value == {} else str(value)


@cache
def setting_names() -> dict[str, SettingName]:
    """Return every setting by its dotted name, in the order of the models."""
    return {setting.name: setting for setting in _walk(Settings, "")}


def find_setting(dotted: str) -> tuple[SettingName, str | None] | None:
    """Find the setting of a dotted name.

    Returns:
        The setting, and the key if it is a table; None if there is no such setting.
    """
    known = setting_names()
    if dotted in known:
        return known[dotted], None
    for table in known.values():
        if table.is_table and dotted.startswith(f"{table.name}.") and len(dotted) > len(table.name) + 1:
            return table, dotted[len(table.name) + 1 :]
    return None


def nearest(dotted: str) -> str | None:
    """Return the known dotted name nearest to an unknown one, or None."""
    known = [*setting_names(), *(f"{name}{FROM_FILE_SUFFIX}" for name in FROM_FILE)]
    close = difflib.get_close_matches(dotted, known, 1, 0.75)
    if close:
        return close[0]
    # The right name in a wrong section, or without a section.
    last = dotted.rpartition(".")[2]
    by_last = {name.rpartition(".")[2]: name for name in reversed(known)}
    close = difflib.get_close_matches(last, by_last, 1, 0.8)
    return by_last[close[0]] if close else None


def variable_of(dotted: str) -> str:
    """Write a dotted name as an environment variable."""
    return PREFIX + dotted.upper().replace(".", DELIMITER)


def _walk(model: type[BaseModel], prefix: str) -> Iterator[SettingName]:
    for field_name, field in model.model_fields.items():
        dotted = prefix + (field.alias or field_name)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _walk(field.annotation, f"{dotted}.")
        else:
            yield SettingName(dotted, field, model, field_name)


@cache
def _descriptions(model: type[BaseModel]) -> dict[str, str]:
    """Return the text below each field of a model, on one line."""
    (written,) = ast.parse(inspect.getsource(model)).body
    assert isinstance(written, ast.ClassDef)
    found = {}
    for field, text in pairwise(written.body):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            found[ast.unparse(field.target)] = " ".join(str(text.value.value).split())
    return found


def _members(field: FieldInfo) -> tuple[Any, ...]:
    return get_args(field.annotation) or (field.annotation,)


def _rules_of_members(field: FieldInfo) -> Iterator[Any]:
    for member in _members(field):
        for info in getattr(member, "__metadata__", ()):
            yield from info.metadata


def _type_name(kind: Any) -> str:
    if get_origin(kind) is Annotated:
        return _type_name(get_args(kind)[0])
    if get_origin(kind) is Literal:
        return " or ".join(map(repr, get_args(kind)))
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return "table"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "one of " + ", ".join(str(member.value) for member in kind)
    return _TYPES.get(kind, "text")
