"""Secrets among the settings: masked in every text, and refused on the command line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import Any

import orjson
from pydantic import BaseModel, SecretStr

from wait_registry.errors import ConfigurationError
from wait_registry.settings.names import (
    FROM_FILE,
    FROM_FILE_SUFFIX,
    SettingName,
    find_setting,
    setting_names,
    variable_of,
)
from wait_registry.settings.tree import Settings

MASK = "**********"

# Client and Spark properties have no types, so the name decides; masking one too many is harmless.
_SECRET_KEY = re.compile(r"(?i)pass|secret|token|credential|jaas|pem|\bkey\b|private|oauth")
# Names that sound secret and name a place or a method.
_HARMLESS_KEY = re.compile(r"(?i)(location|path|file|dir|type|url|enabled?|ms|ca\.pem|certificate\.pem)$")
_USER_INFO = re.compile(r"(?<=://)[^/@\s]*@")
_PASSWORD_IN_URL = re.compile(r"://[^/@\s]*:[^/\s]*@")
_PASSWORD_IN_CONNINFO = re.compile(r"(?i)password\s*=\s*[^\s&]")


def sounds_secret(key: str) -> bool:
    """Return whether the name of a property without a type suggests a secret."""
    return _SECRET_KEY.search(key) is not None


def describe(settings: Settings) -> str:
    """List every setting and its value on a line of its own, with secrets masked."""
    return "\n".join(f"{name} = {value}" for name, value in shown_settings(settings).items())


def shown_settings(settings: Settings) -> dict[str, str]:
    """Return every setting and its value as text, with secrets masked."""
    found: dict[str, str] = {}
    for setting in setting_names().values():
        value = value_of(settings, setting.name)
        if setting.is_table and isinstance(value, dict):
            found |= {f"{setting.name}.{key}": shown_value(setting, key, one) for key, one in value.items()}
        else:
            found[setting.name] = shown_value(setting, None, value)
    return found


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
    if isinstance(value, BaseModel):
        value = value.model_dump(exclude_defaults=True, by_alias=True)
    return without_credentials(str(value.value if isinstance(value, Enum) else value))


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


def refuse_secrets(overrides: Mapping[str, str]) -> None:
    """Refuse secrets on the command line, where every user of the host can read them in the process list.

    Args:
        overrides: dotted name -> text, from ``--set``.

    Raises:
        ConfigurationError: there is one; the message names the settings (never their values) and safe places for them.
    """
    if exposed := [refusal for name, text in overrides.items() if (refusal := _refusal(name, text))]:
        raise ConfigurationError("\n".join(exposed))


def _refusal(name: str, text: str) -> str | None:
    found = find_setting(name)
    if found is None or not text:
        return None  # an unknown setting, which is refused later, or the path of a file
    setting, key = found
    if not (_PASSWORD_IN_URL.search(text) or _is_secret(setting, key, text)):
        return None
    places = f"in waitreg.toml or .env, or as {variable_of(setting.name)}"
    if setting.name in FROM_FILE:
        places += f", or in a file of its own that {setting.name}{FROM_FILE_SUFFIX} names"
    return (
        f"--set {name}: every user of this host can read a secret on the command line, and the shell may store it. "
        f"Change the secret if others could see it, and set it {places}"
    )


def _is_secret(setting: SettingName, key: str | None, text: str) -> bool:
    if setting.is_table:
        keys = _keys(text) if key is None else [key]
        return any(sounds_secret(one) and not _HARMLESS_KEY.search(one) for one in keys)
    if setting.name == "postgres.url":
        return _PASSWORD_IN_CONNINFO.search(text) is not None
    return setting.holds_secret


def _keys(text: str) -> list[str]:
    try:
        table = orjson.loads(text)
    except orjson.JSONDecodeError:
        return []  # it is refused later
    return list(table) if isinstance(table, dict) else []
