"""A connector's file: `{"name": ..., "config": {...}}` as the REST API takes it, with variables to be filled in."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from wait_registry.errors import ConfigurationError
from wait_registry.settings.connect import require_connect
from wait_registry.settings.tree import Settings
from waitreg.connect.state import NAMES
from waitreg.connect.variables import variable

FAMILIES: Final = ("debezium", "jdbc")
# The files of connect-configs/ without `.json`.
OWN_FILES: Final = tuple(f"{name}.{family}" for family in FAMILIES for name in NAMES)
# `$${` is a plain `${`; `${env:NAME}` is for the worker's ConfigProviders, `${topic}` and `${source.table}` are sink
# connectors' own.
_VARIABLE: Final = re.compile(r"\$\$\{|\$\{(?!topic\}|source\.)([^{}:]+)\}")


@dataclass(frozen=True, slots=True)
class Connector:
    """A connector as it goes to the worker; ``origin`` is the file it comes from."""

    name: str
    config: Mapping[str, str]
    origin: str

    def as_json(self) -> str:
        """Write its configuration and name, as PUT /connectors/NAME/config of the REST API takes them."""
        return json.dumps({"name": self.name, **self.config}, indent=2, ensure_ascii=False)


def connector_path(given: str) -> Path:
    """Return the file that a name of `OWN_FILES` or a path stands for."""
    return Path(str(resources.files("wait_registry_connect"))) / f"{given}.json" if given in OWN_FILES else Path(given)


def fill_in(given: Iterable[str], settings: Settings) -> list[Connector]:
    """Read connectors, and fill in their variables from settings.

    Args:
        given: names of this project's files, or paths.
        settings: what they are filled from.

    Raises:
        ConfigurationError: a file can't be read or filled in, or settings of Kafka Connect contradict each other.
    """
    require_connect(settings.connect)
    return [read_connector(connector_path(name), partial(variable, settings=settings)) for name in given]


def read_connector(path: Path, variable: Callable[[str], str | None]) -> Connector:
    """Read a file and fill its variables in.

    Args:
        path: of the file.
        variable: returns the value of a name; its ConfigurationErrors get the file and the property. A property with
            a variable that has no value (None) is omitted, because connectors take an empty text for a value.

    Raises:
        ConfigurationError: the file can't be read, has another form, or a variable can't be filled in.
    """
    document = _parsed(path)
    filled: dict[str, str] = {}
    for key, given in document.config.items():
        value = given if isinstance(given, str) else json.dumps(given)
        where = f"{path.name}: {key}"
        filled_key, filled_value = _filled(key, variable, where), _filled(value, variable, where)
        if filled_key is not None and filled_value is not None:
            filled[filled_key] = filled_value
    filled_name = _filled(document.name, variable, f"{path.name}: name")
    if filled_name is None or "connector.class" not in filled:
        raise ConfigurationError(f'{path}: expected a "name", and a "connector.class" in "config", that have a value')
    return Connector(filled_name, filled, str(path))


def _filled(text: str, variable: Callable[[str], str | None], where: str) -> str | None:
    """Fill variables in; return None if one of them has no value."""
    try:
        values = {name: variable(name) for name in filter(None, _VARIABLE.findall(text))}
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}") from error
    if None in values.values():
        return None
    return _VARIABLE.sub(lambda match: str(values[match[1]]) if match[1] else "${", text)


class _Document(BaseModel):
    """A file's content; numbers and booleans are texts to Kafka Connect."""

    model_config = ConfigDict(extra="forbid")

    name: str
    config: dict[str, str | bool | int | float]


def _parsed(path: Path) -> _Document:
    try:
        return _Document.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ConfigurationError(
            f"can't read {path}: {error.strerror or error}; this project's files are {', '.join(OWN_FILES)}"
        ) from None
    except ValidationError as error:
        first = error.errors()[0]
        seen = f"{'.'.join(map(str, first['loc']))} {first['msg']}"
        # Not the error itself: it repeats the text, perhaps with a secret.
        raise ConfigurationError(
            f'{path}: expected {{"name": "...", "config": {{...}}}} with texts, numbers and booleans; {seen}'
        ) from None


# A property with such a name, or such a parameter in a URL or a JAAS line.
_SECRET: Final = re.compile(
    r"""(password|passphrase|secret|ssl\.keystore\.key)\s*=\s*["']?(?!["']|\$\{)[^\s;&]""", re.IGNORECASE
)


def plain_secrets(connectors: Iterable[Connector]) -> Iterator[str]:
    """Yield a sentence, without the secret, for each property that has a secret in plain text. Pure."""
    for connector in connectors:
        for name, value in connector.config.items():
            if _SECRET.search(f"{name}={value}"):
                yield (
                    f"{connector.name} ({connector.origin}): {name} has a secret in plain text, which Kafka Connect "
                    "shows to every client of its REST API: write a reference, ${connect.secrets.postgres_password} or "
                    "${file:PATH:KEY}"
                )
