"""Every setting with its type, default, bounds and reason, read from the models themselves."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from annotated_types import Ge, Gt, Le, Lt, MaxLen, MinLen
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from wait_registry.settings.names import FROM_FILE, setting_names
from wait_registry.settings.root import Settings

_SIGNS = {Ge: ("ge", ">="), Gt: ("gt", ">"), Le: ("le", "<="), Lt: ("lt", "<")}


@dataclass(frozen=True, slots=True)
class SettingReference:
    """One setting as a user meets it.

    ``name`` is what `--set` takes, ``variable`` its environment variable; ``from_file`` ones can also be given as the
    path of a file with the value, by the same name with ``_file``.
    """

    name: str
    variable: str
    kind: str
    default: str
    bounds: str
    description: str
    from_file: bool


def settings_reference() -> list[SettingReference]:
    """Return all settings, section by section, in the order of the models."""
    return [
        SettingReference(
            name=setting.name,
            variable=setting.variable,
            kind=_kind(setting.field.annotation),
            default=_default(setting.field.default),
            bounds=", ".join(_bounds(setting.field)),
            description=setting.field.description or "",
            from_file=setting.name in FROM_FILE,
        )
        for setting in setting_names().values()
    ]


def section_titles() -> dict[str, str]:
    """Return the first docstring line of each section, by section name."""
    titles: dict[str, str] = {}
    for name, field in Settings.model_fields.items():
        section = field.annotation
        if isinstance(section, type) and issubclass(section, BaseModel):
            titles[name] = (section.__doc__ or "").strip().splitlines()[0].replace("``", "`")
    return titles


def _kind(annotation: Any) -> str:
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_kind(part) for part in typing.get_args(annotation) if part is not types.NoneType)
    if origin is tuple:
        return f"list of {_kind(typing.get_args(annotation)[0])}"
    if origin is dict:
        return "table"
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return "one of " + ", ".join(member.value for member in annotation)
    names = {str: "text", int: "whole number", float: "number", bool: "true or false", SecretStr: "secret"}
    return names.get(annotation, getattr(annotation, "__name__", str(annotation)))


def _default(value: object) -> str:
    if value is None or value in ("", (), {}):
        return ""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, tuple):
        return "[" + ", ".join(str(part) for part in value) + "]"
    return str(value)


def _bounds(field: FieldInfo) -> Iterator[str]:
    for rule in field.metadata:
        for kind, (attribute, sign) in _SIGNS.items():
            if isinstance(rule, kind):
                yield f"{sign} {getattr(rule, attribute)}"
        if isinstance(rule, MinLen) and field.annotation is str:
            yield "not empty"
        if isinstance(rule, MaxLen):
            yield f"at most {rule.max_length} characters"
        pattern = getattr(rule, "pattern", None)
        if pattern:
            yield f"matches {pattern}"
