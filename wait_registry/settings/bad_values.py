"""Messages about values that the models refuse: what was given and where, and what is allowed, with the unit."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from wait_registry.settings.masking import shown_value
from wait_registry.settings.names import SettingName, find_setting
from wait_registry.settings.sources import Given

_UNITS = {"_ms": "ms", "_s": "s", "_bytes": "bytes", "_days": "days"}
_BOUNDS = {"ge": ">= {}", "gt": "> {}", "le": "<= {}", "lt": "< {}", "min_length": "not shorter than {}"}
_FURTHER_BOUNDS = {"max_length": "not longer than {}", "pattern": "like {}"}


def bad_values(error: ValidationError, given: Mapping[str, Given]) -> str:
    """Describe every refused value on a line of its own; secrets are never shown."""
    details = error.errors(include_url=False, include_context=False)
    lines = [_line(detail, given) for detail in details]
    # A union (a table's values) reports each of its members.
    return "\n".join(dict.fromkeys(lines))


def _line(detail: ErrorDetails, given: Mapping[str, Given]) -> str:
    name = _name_at(detail["loc"])
    found = find_setting(name)
    if found is None:
        return f"{name}: {detail['msg']}"
    setting, key = found
    one = given.get(name)
    where = f"{one.where}: " if one else ""
    seen = shown_value(setting, key, one.value if one else detail["input"])
    limits = allowed(setting)
    return f"{where}{name} is {seen}; allowed: {limits}. It is: {setting.field.description} ({detail['msg']})"


def _name_at(location: tuple[int | str, ...]) -> str:
    parts = [part for part in location if isinstance(part, str)]
    for length in range(len(parts), 0, -1):
        found = find_setting(".".join(parts[:length]))
        if found is not None:
            setting, key = found
            # Below a table comes the key, then pydantic's name for the member of the union.
            return setting.name if key is None else f"{setting.name}.{parts[setting.name.count('.') + 1]}"
    return ".".join(map(str, location))


def allowed(setting: SettingName) -> str:
    """Say which values a setting takes, with bounds and unit."""
    unit = next((f" {unit}" for suffix, unit in _UNITS.items() if setting.name.endswith(suffix)), "")
    bounds = ", ".join(f"{bound}{unit}" for bound in _bounds(setting.field))
    kind = _kind(setting)
    return f"{kind} {bounds}" if bounds else f"{kind}{f' in{unit}' if unit else ''}"


def _kind(setting: SettingName) -> str:
    annotation = setting.field.annotation
    members = [member for member in getattr(annotation, "__args__", (annotation,)) if member is not type(None)]
    if setting.is_table:
        return "text, number or boolean"
    if setting.is_list:
        return f"a list of {_type_name(members[0])}s"
    return " or ".join(_type_name(member) for member in members)


def _type_name(kind: object) -> str:
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "one of " + ", ".join(str(member.value) for member in kind)
    names: dict[object, str] = {int: "whole number", float: "number", bool: "true or false"}
    return names.get(kind, "text")


def _bounds(field: FieldInfo) -> list[str]:
    formats = _BOUNDS | _FURTHER_BOUNDS
    found = []
    for rule in field.metadata:
        for name, text in formats.items():
            limit = getattr(rule, name, None)
            if limit is not None:
                found.append(text.format(limit))
    return found
