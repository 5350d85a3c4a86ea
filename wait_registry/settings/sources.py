"""Where settings come from: each source read into flat names, so that none is silently ignored.

pydantic-settings' own readers pass over unknown environment variables, lower-case the keys of tables and can't say
which variable or line a bad value came from. So the sources are read here, and pydantic validates what was read.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
from dotenv import dotenv_values

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


@dataclass(frozen=True, slots=True)
class Given:
    """A value as a source has it: ``name`` is dotted, ``where`` says who gave it, in words for a message."""

    name: str
    value: Any
    where: str


@dataclass(frozen=True, slots=True)
class Source:
    """All values of one source; ``folder`` is what relative paths in it refer to."""

    given: tuple[Given, ...]
    folder: Path
    spells_variables: bool = False


def from_command_line(overrides: Mapping[str, str]) -> Source:
    """Read ``--set name=value`` pairs, names dotted."""
    return Source(tuple(Given(name, text, f"--set {name}") for name, text in overrides.items()), Path())


def from_environment(environment: Mapping[str, str]) -> Source:
    """Read ``WAITREG_SECTION__NAME`` variables; all others belong to somebody else."""
    return Source(tuple(_variables(environment, "environment variable {}")), Path(), spells_variables=True)


def from_dotenv(path: Path) -> Source:
    """Read the WAITREG_ variables of a .env file; nothing when there is no such file.

    Raises:
        ConfigurationError: the file can't be read.
    """
    try:
        # Values are taken as they stand: a password may well contain a dollar sign.
        values = dotenv_values(path, interpolate=False) if path.is_file() else {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"can't read {path}: {error}") from error
    texts = {name: text or "" for name, text in values.items()}
    return Source(tuple(_variables(texts, f"{path}: {{}}")), path.parent, spells_variables=True)


def from_toml(path: Path) -> Source:
    """Read a waitreg.toml.

    Raises:
        ConfigurationError: the file isn't there, can't be read or is no TOML.
    """
    try:
        tree = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigurationError(f"can't read the settings file {path}: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the settings file {path} is no TOML: {error}") from error
    return Source(tuple(_flat(tree, "", str(path))), path.parent)


def known_values(source: Source) -> dict[str, Given]:
    """Resolve a source's names: tables key by key, ``..._file`` replaced by the file's text.

    Raises:
        ConfigurationError: unknown names, each with the nearest known one; a name given twice; a file that
            can't be read.
    """
    values: dict[str, Given] = {}
    problems: list[str] = []
    for given in source.given:
        try:
            for resolved in _resolve(given, source):
                if resolved.name in values:
                    raise ConfigurationError(
                        f"{resolved.where} and {values[resolved.name].where}: give only one of them"
                    )
                values[resolved.name] = resolved
        except ConfigurationError as error:
            problems.append(str(error))
    if problems:
        raise ConfigurationError("\n".join(problems))
    return values


def _resolve(given: Given, source: Source) -> Iterator[Given]:
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


def _from_file(given: Given, source: Source) -> Given:
    name = given.name.removesuffix(FROM_FILE_SUFFIX)
    if name == given.name or name not in FROM_FILE:
        raise ConfigurationError(_unknown(given, source))
    path = source.folder / str(given.value)
    try:
        # Editors end files with a line break; no password does.
        text = path.read_text("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ConfigurationError(f"{given.where}: can't read {path}: {reason}") from error
    return Given(name, text, given.where)


def _unknown(given: Given, source: Source) -> str:
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
    if setting.is_optional and given.value == "":
        return None
    return given.value


def _list(given: Given) -> list[Any]:
    text = given.value.strip()
    if not text.startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    try:
        parsed = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ConfigurationError(f"{given.where}: {given.name} begins like a JSON list but is none: {error}") from error
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
    # A shell can't export names with dots: SOCKET_TIMEOUT_MS is socket.timeout.ms, as Kafka's own images have it.
    return key if "." in key or key != key.upper() else key.lower().replace("_", ".")


def _flat(tree: Mapping[str, Any], prefix: str, path: str) -> Iterator[Given]:
    for key, value in tree.items():
        name = f"{prefix}{key}"
        # A table of ours is taken apart; `socket.timeout.ms = 1` without quotes nests in TOML, and is joined again.
        if isinstance(value, dict):
            yield from _flat(value, f"{name}.", path)
        else:
            yield Given(name, value, f"{path}: {name}")
