"""A connector's file: `{"name": ..., "config": {...}}` as the REST API takes it, with variables to be filled in."""

from __future__ import annotations

import contextlib
import difflib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final, Literal

from wait_registry.errors import ConfigurationError

Family = Literal["debezium", "jdbc"]
Role = Literal["sink", "source"]

_RESOURCES: Final = "wait_registry_connect"
# The connectors of each role, by the beginnings of their files' names.
CONNECTORS: Final[Mapping[Role, tuple[str, ...]]] = {
    "sink": ("wait.sink", "dead_letter.sink"),
    "source": ("expired.source", "expired.tombstones"),
}
NAMES: Final = tuple(name for names in CONNECTORS.values() for name in names)
# `$${` is a plain `${`.
_VARIABLE: Final = re.compile(r"\$\$\{|\$\{([^{}]*)\}")
# `${env:NAME}` is for the worker's ConfigProviders; `${topic}` and `${source.table}` are sink connectors' own.
_NOT_OURS: Final = re.compile(r".*:.*|topic|source\..*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Connector:
    """A connector as it goes to the worker; ``origin`` is the file it comes from."""

    name: str
    config: Mapping[str, str]
    origin: str

    @property
    def connector_class(self) -> str:
        """The class that the worker runs."""
        return self.config["connector.class"]

    def as_json(self) -> str:
        """Write it as the REST API takes it."""
        return json.dumps({"name": self.name, "config": dict(self.config)}, indent=2, ensure_ascii=False)


def own_files(role: Role, family: Family) -> list[Path]:
    """Return this project's files for a role."""
    folder = Path(str(resources.files(_RESOURCES)))
    return [folder / f"{name}.{family}.json" for name in CONNECTORS[role]]


def read_connector(path: Path, variable: Callable[[str], str | None]) -> Connector:
    """Read a file and fill its variables in.

    Args:
        path: of the file.
        variable: returns the value of a name; its ConfigurationErrors get the file and the property. A property with
            a variable that has no value (None) is omitted, because connectors take an empty text for a value.

    Raises:
        ConfigurationError: the file can't be read, has another form, or a variable can't be filled in.
    """
    name, config = _parsed(path)
    filled: dict[str, str] = {}
    for key, value in config.items():
        property_name = _filled(key, variable, f"{path.name}: {key}")
        if property_name in filled:
            raise ConfigurationError(f"{path}: {property_name} is in it twice once its variables are filled in")
        with contextlib.suppress(_Nothing):
            filled[property_name] = _filled(value, variable, f"{path.name}: {key}")
    if "connector.class" not in filled:
        raise ConfigurationError(f'{path}: "config" has no "connector.class"')
    return Connector(_filled(name, variable, f"{path.name}: name"), filled, str(path))


class _Nothing(ConfigurationError):
    """A variable has no value: no name can be made of it, and its property is omitted."""


def _filled(text: str, variable: Callable[[str], str | None], where: str) -> str:
    def stands_for(match: re.Match[str]) -> str:
        name = match.group(1)
        if name is None:
            return "${"
        if _NOT_OURS.fullmatch(name):
            return match.group()
        try:
            value = variable(name)
        except ConfigurationError as error:
            raise ConfigurationError(f"{where}: {error}") from error
        if value is None:
            raise _Nothing(f"{where}: ${{{name}}} has no value")
        return value

    return _VARIABLE.sub(stands_for, text)


def _parsed(path: Path) -> tuple[str, dict[str, str]]:
    try:
        document = json.loads(path.read_text("utf-8"), object_pairs_hook=_without_doubles)
    except FileNotFoundError:
        raise ConfigurationError(_not_there(path)) from None
    except OSError as error:
        raise ConfigurationError(f"can't read {path}: {error.strerror or error}") from None
    except ValueError as error:
        raise ConfigurationError(f"{path} is no JSON: {error}") from error
    if not isinstance(document, dict) or set(document) != {"name", "config"} or not isinstance(document["name"], str):
        raise ConfigurationError(f'{path}: expected {{"name": "...", "config": {{...}}}} and nothing else')
    if not isinstance(document["config"], dict):
        raise ConfigurationError(f'{path}: "config" must be an object of properties')
    return document["name"], {key: _property(value, f"{path}: {key}") for key, value in document["config"].items()}


def _not_there(path: Path) -> str:
    folder = path.parent.resolve()
    said = f"can't read {path}: no such file in {folder}"
    for role, names in CONNECTORS.items():
        if any(path.name.startswith(name) for name in names):
            return f"{said}; `connect apply --{role} debezium` takes this project's file, FILE one of yours"
    near = difflib.get_close_matches(path.name, [file.name for file in sorted(folder.glob("*.json"))], 1)
    expected = f"did you mean {path.parent / near[0]}?" if near else 'expected a file {"name": ..., "config": {...}}'
    return f"{said}; {expected}"


def _property(value: Any, where: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise ConfigurationError(f"{where} is {json.dumps(value)}: expected text, a number or a boolean")


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    doubled = sorted({key for key, _ in pairs if sum(key == other for other, _ in pairs) > 1})
    if doubled:
        raise ValueError(f"{', '.join(doubled)} is in it twice")
    return dict(pairs)


# Names of properties that hold secrets.
_SECRET: Final = re.compile(r"(password|passphrase|secret|ssl\.keystore\.key)$", re.IGNORECASE)
_REFERENCE: Final = re.compile(r"\$\{[^{}:]+:[^{}]+\}")
# In a JAAS line, or among a URL's parameters.
_INSIDE: Final = re.compile(r"""(password|secret)\s*=\s*["']?(?!["']|\$\{)[^\s;&]""", re.IGNORECASE)


def plain_secrets(connectors: Iterable[Connector]) -> Iterator[str]:
    """Yield a sentence, without the secret, for each property that has a secret in plain text. Pure."""
    for connector in connectors:
        for name, value in connector.config.items():
            bare = _SECRET.search(name) is not None and value != "" and _REFERENCE.search(value) is None
            if bare or _INSIDE.search(value):
                yield (
                    f"{connector.name} ({connector.origin}): {name} has a secret in plain text, which Kafka Connect "
                    "shows to every client of its REST API: write a reference, ${connect.secrets.postgres_password} or "
                    "${file:PATH:KEY}"
                )
