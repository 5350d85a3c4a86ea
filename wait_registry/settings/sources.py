"""The sources of settings: command line, environment, .env and waitreg.toml, each a source of pydantic-settings.

pydantic-settings merges and validates. Its own readers ignore unknown environment variables, lower-case the keys of
tables, expand ``${...}`` in passwords of a .env file, and don't say where a bad value came from (decision 0023).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
from dotenv import dotenv_values
from pydantic.fields import FieldInfo
from pydantic_settings import PydanticBaseSettingsSource

from wait_registry.display import is_text
from wait_registry.errors import ConfigurationError
from wait_registry.settings.names import (
    DELIMITER,
    FROM_FILE,
    FROM_FILE_SUFFIX,
    PREFIX,
    SettingName,
    find_setting,
    nearest,
    variable_of,
)
from wait_registry.settings.tree import Settings


@dataclass(frozen=True, slots=True)
class Given:
    """A value of a source: ``name`` is dotted, ``where`` names the source in messages."""

    name: str
    value: Any
    where: str


class NamedSource(PydanticBaseSettingsSource):
    """A source whose every value has a known name.

    ``values`` has them by dotted name: tables key by key, ``..._file`` replaced by the file's text. ``problems`` are
    unknown names, each with the nearest known one, names given twice, and files that can't be read.

    Args:
        given: the values as they are given.
        folder: what relative paths in them refer to.
        spells_variables: whether names are spelled as environment variables.
    """

    def __init__(self, given: Iterable[Given], folder: Path = Path(), spells_variables: bool = False) -> None:
        super().__init__(Settings)
        self.folder = folder
        self.spells_variables = spells_variables
        self.values: dict[str, Given] = {}
        self.problems: list[str] = []
        for one in given:
            try:
                for resolved in _resolve(one, self):
                    _require_text(resolved)
                    if resolved.name in self.values:
                        first = self.values[resolved.name].where
                        raise ConfigurationError(f"{resolved.where} and {first}: give only one of them")
                    self.values[resolved.name] = resolved
            except ConfigurationError as error:
                self.problems.append(str(error))

    def __call__(self) -> dict[str, Any]:
        tree: dict[str, Any] = {}
        for given in self.values.values():
            found = find_setting(given.name)
            assert found is not None, given.name
            setting, key = found
            *sections, last = setting.name.split(".")
            place = tree
            for section in [*sections, last] if key is not None else sections:
                place = place.setdefault(section, {})
            place[last if key is None else key] = given.value
        return tree

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        return self().get(field_name), field_name, False


def from_command_line(overrides: Mapping[str, str]) -> NamedSource:
    """Read ``--set name=value`` pairs, names dotted."""
    return NamedSource(Given(name, text, f"--set {name}") for name, text in overrides.items())


def from_environment(environment: Mapping[str, str]) -> NamedSource:
    """Read ``WAITREG_SECTION__NAME`` variables and ignore all others."""
    return NamedSource(_variables(environment, "environment variable {}"), spells_variables=True)


def from_dotenv(path: Path) -> NamedSource:
    """Read the WAITREG_ variables of a .env file; nothing if there is no such file.

    Raises:
        ConfigurationError: the file can't be read.
    """
    try:
        values = dotenv_values(path, interpolate=False) if path.is_file() else {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"can't read {path}: {error}") from error
    texts = {name: text or "" for name, text in values.items()}
    return NamedSource(_variables(texts, f"{path}: {{}}"), path.parent, spells_variables=True)


def from_toml(path: Path) -> NamedSource:
    """Read a waitreg.toml.

    Raises:
        ConfigurationError: the file doesn't exist, can't be read or isn't TOML.
    """
    try:
        tree = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigurationError(f"can't read the settings file {path}: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the settings file {path} isn't TOML: {error}") from error
    return NamedSource(_flat(tree, "", str(path)), path.parent)


def _require_text(given: Given) -> None:
    """Refuse what the libraries behind the settings end the process for: other bytes than UTF-8, and NUL."""
    parts = given.value if isinstance(given.value, list) else [given.value]
    if not all(is_text(part.encode(errors="surrogatepass")) for part in (given.name, *parts) if isinstance(part, str)):
        # The value isn't shown: it may be a secret.
        raise ConfigurationError(f"{given.where} isn't text in UTF-8 without NUL: write it in UTF-8")


def _resolve(given: Given, source: NamedSource) -> Iterator[Given]:
    found = find_setting(given.name)
    if found is None:
        yield _from_file(given, source)
        return
    setting, key = found
    if key is not None:
        yield given
    elif setting.is_table:
        for key, value in _table(given).items():
            yield replace(given, name=f"{given.name}.{key}", value=value)
    else:
        yield replace(given, value=_decoded(setting, given))


def _from_file(given: Given, source: NamedSource) -> Given:
    name = given.name.removesuffix(FROM_FILE_SUFFIX)
    if name == given.name or name not in FROM_FILE:
        raise ConfigurationError(_unknown(given, source))
    path = source.folder / str(given.value)
    try:
        # Editors end files with a line break; passwords don't.
        text = path.read_text("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ConfigurationError(f"{given.where}: can't read {path}: {reason}") from error
    return Given(name, text, given.where)


def _unknown(given: Given, source: NamedSource) -> str:
    near = nearest(given.name)
    text = f"{given.where}: there is no setting {given.name}"
    if near is None:
        return f"{text}; `waitreg config --all` lists them all"
    return f"{text}; did you mean {variable_of(near) if source.spells_variables else near}?"


def _decoded(setting: SettingName, given: Given) -> Any:
    if not isinstance(given.value, str):
        return given.value
    if setting.is_list:
        return _list(given)
    if setting.field.default is None and given.value == "":
        return None
    return given.value


def _list(given: Given) -> list[Any]:
    text = given.value.strip()
    if not text.startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    try:
        parsed = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ConfigurationError(
            f"{given.where}: {given.name} begins like a JSON list but isn't one: {error}"
        ) from error
    return list(parsed)


def _table(given: Given) -> dict[str, Any]:
    if isinstance(given.value, dict):
        return given.value
    try:
        parsed = orjson.loads(given.value or "{}")
    except (orjson.JSONDecodeError, TypeError):
        parsed = None
    if not isinstance(parsed, dict):
        # The text isn't shown: a table may hold secrets.
        raise ConfigurationError(
            f'{given.where}: {given.name} is a table, given as a JSON object such as {{"name": "value"}} or key by key '
            f"as {given.name}.KEY"
        )
    return parsed


def _variables(texts: Mapping[str, str], where: str) -> Iterator[Given]:
    for variable, text in texts.items():
        if variable.upper().startswith(PREFIX):
            parts = variable[len(PREFIX) :].split(DELIMITER)
            yield Given(_dotted(parts), text, where.format(variable))


def _dotted(parts: list[str]) -> str:
    lower = [part.lower() for part in parts]
    for cut in range(1, len(parts)):
        found = find_setting(".".join(lower[:cut]))
        if found and found[0].is_table:
            return f"{found[0].name}.{_property_name(DELIMITER.join(parts[cut:]))}"
    return ".".join(lower)


def _property_name(key: str) -> str:
    # A shell can't export names with dots: SOCKET_TIMEOUT_MS is socket.timeout.ms, as in Kafka's own images.
    return key if "." in key or key != key.upper() else key.lower().replace("_", ".")


def _flat(tree: Mapping[str, Any], prefix: str, path: str) -> Iterator[Given]:
    for key, value in tree.items():
        name = f"{prefix}{key}"
        # `socket.timeout.ms = 1` without quotes is nested in TOML; its parts are joined again.
        if isinstance(value, dict):
            yield from _flat(value, f"{name}.", path)
        else:
            yield Given(name, value, f"{path}: {name}")
