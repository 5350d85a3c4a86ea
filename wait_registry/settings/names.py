"""The names of all settings, as each source spells them, and the nearest name to an unknown one."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from wait_registry.settings.root import Settings

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
        "connect.password",
        "connect.ca",
    }
)


@dataclass(frozen=True, slots=True)
class SettingName:
    """One setting: ``name`` is dotted, as on the command line; a table takes keys of any name."""

    name: str
    field: FieldInfo

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return variable_of(self.name)

    @property
    def is_table(self) -> bool:
        """Whether the value is a table of others' names (client properties)."""
        return get_origin(self.field.annotation) is dict

    @property
    def is_list(self) -> bool:
        """Whether the value is a list."""
        return get_origin(self.field.annotation) is tuple

    @property
    def is_optional(self) -> bool:
        """Whether the setting may be absent."""
        return self.field.default is None

    @property
    def is_secret(self) -> bool:
        """Whether the value must never be shown."""
        return self.holds_secret or self.name in FROM_FILE

    @property
    def holds_secret(self) -> bool:
        """Whether the value is a password or key; certificates are masked only because they are long."""
        return SecretStr in _union_members(self.field.annotation)


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
            yield SettingName(dotted, field)


def _union_members(annotation: Any) -> tuple[Any, ...]:
    return getattr(annotation, "__args__", None) or (annotation,)
