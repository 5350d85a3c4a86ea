"""What the first parameter of a Python handler asks for: the record, or its value decoded to a type."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pydantic import BaseModel

from wait_registry.errors import ConfigurationError
from wait_registry.handler import Avro, Record

_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_SUPPORTED: Final = (
    "expected Record, a pydantic model, a dataclass, a Protobuf message class, or Annotated[a model or dataclass, "
    "Avro], each also with '| None'"
)


class Format(Enum):
    """How values are encoded."""

    JSON = "JSON"
    AVRO = "Avro"
    PROTOBUF = "Protobuf"


@dataclass(frozen=True, slots=True)
class Payload:
    """The type of a handler's first parameter.

    ``annotation`` is what the handler's author wrote, ``members`` the types in it except None. ``with_record`` is
    whether the handler takes the record as its second argument.
    """

    annotation: Any
    members: tuple[Any, ...]
    format: Format
    accepts_none: bool
    with_record: bool

    @property
    def name(self) -> str:
        """What messages call the type."""
        return " | ".join(map(_name_of, self.members))


def payload_of(name: str, function: Callable[..., Any]) -> Payload | None:
    """Read the annotation of a handler's first parameter.

    Args:
        name: how the settings name the handler.
        function: the user's function or bound method.

    Returns:
        None if the handler takes the record alone.

    Raises:
        ConfigurationError: the annotation isn't supported or can't be evaluated, or the function can't be called with
            these arguments; fix the handler.
    """
    parameters = _parameters(name, function)
    if parameters is None:
        return None
    if not parameters or parameters[0].kind not in _POSITIONAL or _is_record(parameters[0].annotation):
        _require_one_parameter(name, parameters)
        return None
    annotation = parameters[0].annotation
    members = dict.fromkeys(_members(annotation))
    accepts_none = NoneType in members
    types = tuple(member for member in members if member is not NoneType)
    found = _format_of(types, _is_avro(annotation))
    if found is None:
        raise ConfigurationError(
            f"handler {name!r}: its first parameter {parameters[0].name!r} is annotated {_name_of(annotation)}; "
            f"{_SUPPORTED}"
        )
    return Payload(annotation, types, found, accepts_none, _takes_record(name, parameters[1:]))


def _parameters(name: str, function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(function, eval_str=True).parameters.values())
    except ValueError:  # some functions written in C have no signature
        return None
    except Exception as error:
        # Names that are imported for the type checker alone don't matter to a handler that takes the record.
        parameters = list(inspect.signature(function).parameters.values())
        if not parameters or _is_record(parameters[0].annotation):
            return parameters
        raise ConfigurationError(
            f"handler {name!r}: its annotations can't be evaluated: {type(error).__name__}: {error}. "
            "Import the types that they name where the module is loaded, not under TYPE_CHECKING"
        ) from error


def _is_record(annotation: Any) -> bool:
    if isinstance(annotation, str):
        return annotation.rpartition(".")[2].strip("'\"") == Record.__name__
    if annotation in (inspect.Parameter.empty, Any, object):
        return True
    return inspect.isclass(annotation) and issubclass(annotation, Record)


def _members(annotation: Any) -> Iterator[Any]:
    """Yield the types of a union."""
    if get_origin(annotation) is Annotated:
        yield from _members(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, UnionType):
        for member in get_args(annotation):
            yield from _members(member)
    else:
        yield annotation


def _is_avro(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        inner, *metadata = get_args(annotation)
        return Avro in metadata or _is_avro(inner)
    return get_origin(annotation) in (Union, UnionType) and any(map(_is_avro, get_args(annotation)))


def _format_of(types: tuple[Any, ...], avro: bool) -> Format | None:
    if types and all(map(_is_model, types)):
        return Format.AVRO if avro else Format.JSON
    return Format.PROTOBUF if len(types) == 1 and _is_message(types[0]) and not avro else None


def _is_model(one: Any) -> bool:
    found = get_origin(one) or one
    return inspect.isclass(found) and (issubclass(found, BaseModel) or is_dataclass(found))


def _is_message(one: Any) -> bool:
    # A module with a message class has imported Protobuf, which is an extra.
    protobuf = sys.modules.get("google.protobuf.message")
    return protobuf is not None and inspect.isclass(one) and issubclass(one, protobuf.Message)


def _required(parameters: list[inspect.Parameter]) -> list[inspect.Parameter]:
    return [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def _require_one_parameter(name: str, parameters: list[inspect.Parameter]) -> None:
    """Refuse a function that can't be called with the record alone."""
    required = _required(parameters)
    takes_one = any(p.kind in _POSITIONAL or p.kind is p.VAR_POSITIONAL for p in parameters)
    if len(required) > 1 or not takes_one or any(p.kind is p.KEYWORD_ONLY for p in required):
        seen = ", ".join(p.name for p in required) or "none"
        raise ConfigurationError(
            f"handler {name!r} takes {len(required)} parameter{'' if len(required) == 1 else 's'} ({seen}); "
            "expected one, the record: def handle(record)"
        )


def _takes_record(name: str, others: list[inspect.Parameter]) -> bool:
    required = _required(others)
    if not required:
        return False
    first = required[0]
    if len(required) > 1 or first.kind not in _POSITIONAL or not _is_record(first.annotation):
        seen = ", ".join(parameter.name for parameter in required)
        raise ConfigurationError(
            f"handler {name!r} takes {seen} after its first parameter; expected the record, or nothing: "
            "def handle(order: Order, record: Record)"
        )
    return True


def _name_of(annotation: Any) -> str:
    return annotation.__qualname__ if inspect.isclass(annotation) and not get_args(annotation) else str(annotation)
