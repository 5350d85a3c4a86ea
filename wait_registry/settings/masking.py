"""Settings as text, with secrets masked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import Any

from pydantic import BaseModel, SecretStr

from wait_registry.settings.names import SettingName, setting_names
from wait_registry.settings.root import Settings

MASK = "**********"

# Client and Spark properties have no types, so the name decides; masking one too many is harmless.
_SECRET_KEY = re.compile(r"(?i)pass|secret|token|credential|jaas|pem|\bkey\b|private|oauth")
_USER_INFO = re.compile(r"(?<=://)[^/@\s]*@")


def sounds_secret(key: str) -> bool:
    """Return whether the name of a property without a type suggests a secret."""
    return _SECRET_KEY.search(key) is not None


def describe(settings: Settings) -> str:
    """List every setting and its value on a line of its own, with secrets masked."""
    return "\n".join(f"{name} = {value}" for name, value in shown_settings(settings))


def shown_settings(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield the dotted name of every setting with its value as text, secrets masked."""
    for setting in setting_names().values():
        value = value_of(settings, setting.name)
        if setting.is_table and isinstance(value, dict):
            yield from ((f"{setting.name}.{key}", shown_value(setting, key, one)) for key, one in value.items())
        else:
            yield setting.name, shown_value(setting, None, value)


def shown_value(setting: SettingName, key: str | None, value: Any) -> str:
    """Write one value as text, masked if it is a secret.

    Args:
        setting: whose value it is.
        key: the key within a table.
        value: the value, of any type.
    """
    if value is None:
        return "(none)"
    if setting.is_secret or isinstance(value, SecretStr) or (key is not None and sounds_secret(key)):
        return MASK
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(shown_value(setting, key, item) for item in value) + "]"
    if isinstance(value, str) and not isinstance(value, Enum):
        return repr(without_credentials(value))
    return str(value.value if isinstance(value, Enum) else value)


def without_credentials(text: str) -> str:
    """Mask the user and password of every URL in a text."""
    return _USER_INFO.sub(f"{MASK}@", text)


def value_of(settings: Settings, dotted: str) -> Any:
    """Return the value of a setting by its dotted name, unmasked."""
    place: Any = settings
    for part in dotted.split("."):
        assert isinstance(place, BaseModel)
        by_name = {field.alias or name: name for name, field in type(place).model_fields.items()}
        place = getattr(place, by_name[part])
    return place
