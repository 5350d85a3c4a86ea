"""Refuses secrets on the command line, where every user of the host can read them in the process list."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import orjson

from wait_registry.errors import ConfigurationError
from wait_registry.settings.masking import sounds_secret
from wait_registry.settings.names import FROM_FILE, FROM_FILE_SUFFIX, SettingName, find_setting, variable_of

_POSTGRES_URL = "postgres.url"
# Names that sound secret and name a place or a method.
_HARMLESS_KEY = re.compile(r"(?i)(location|path|file|dir|type|url|enabled?|ms|ca\.pem|certificate\.pem)$")
_PASSWORD_IN_URL = re.compile(r"://[^/@\s]*:[^/\s]*@")
_PASSWORD_IN_CONNINFO = re.compile(r"(?i)password\s*=\s*[^\s&]")


def refuse_secrets(overrides: Mapping[str, str]) -> None:
    """Refuse secrets among settings of the command line.

    Args:
        overrides: dotted name -> text, from ``--set``.

    Raises:
        ConfigurationError: there is one; the message names the settings (never their values) and safe places for them.
    """
    exposed = [name for name, text in overrides.items() if _is_secret(name, text)]
    if exposed:
        raise ConfigurationError("\n".join(map(_refusal, exposed)))


def _is_secret(name: str, text: str) -> bool:
    found = find_setting(name)
    if found is None or not text:
        return False  # an unknown setting, which is refused later, or the path of a file
    setting, key = found
    if key is not None:
        return _is_secret_key(key) or _PASSWORD_IN_URL.search(text) is not None
    if setting.is_table:
        return any(_is_secret_key(key) for key in _keys(text)) or _PASSWORD_IN_URL.search(text) is not None
    if setting.name == _POSTGRES_URL:
        return bool(_PASSWORD_IN_URL.search(text) or _PASSWORD_IN_CONNINFO.search(text))
    return setting.holds_secret or _PASSWORD_IN_URL.search(text) is not None


def _is_secret_key(key: str) -> bool:
    return sounds_secret(key) and _HARMLESS_KEY.search(key) is None


def _keys(text: str) -> Iterator[str]:
    try:
        table = orjson.loads(text)
    except orjson.JSONDecodeError:
        return  # it is refused later
    if isinstance(table, dict):
        yield from table


def _refusal(name: str) -> str:
    found = find_setting(name)
    assert found is not None, name
    setting: SettingName = found[0]
    places = f"in waitreg.toml or .env, or as {variable_of(setting.name)}"
    if setting.name in FROM_FILE:
        places += f", or in a file of its own that {setting.name}{FROM_FILE_SUFFIX} names"
    return (
        f"--set {name}: every user of this host can read a secret on the command line, and the shell may store it. "
        f"Change the secret if others could see it, and set it {places}"
    )
