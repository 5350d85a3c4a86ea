"""Decodes a record's value to the type that a handler asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from processor.handlers.exact_decimals import takes_decimal, with_exact_numbers
from processor.handlers.failures import is_retriable
from processor.handlers.payload import Format, Payload
from wait_registry.errors import ConfigurationError, MalformedError
from wait_registry.handler import Record
from wait_registry.schemas.registry import SchemaRegistry, id_before_json, id_in_header, names_schema
from wait_registry.settings.processor import SchemaRegistrySettings

_SHOWN_PROBLEMS: Final = 5


class Decoder:
    """Decodes values of one type.

    Args:
        name: how the settings name the handler.
        payload: the type.
        settings: where the schemas of Avro and Protobuf values are.

    Raises:
        ConfigurationError: pydantic can't make a validator of the type, an extra is missing, or Avro values are to be
            decoded without a schema registry.
    """

    def __init__(self, name: str, payload: Payload, settings: SchemaRegistrySettings) -> None:
        self._payload = payload
        self._registry: SchemaRegistry | None = None
        self._decode: Callable[[bytes], Any]
        if payload.format is Format.PROTOBUF:
            (message_class,) = payload.members
            self._decode = message_class.FromString
            if settings.url:
                self._registry = SchemaRegistry(settings)
                self._decode = self._registry.protobuf(message_class)
        elif payload.format is Format.AVRO:
            if not settings.url:
                raise ConfigurationError(
                    f"handler {name!r} takes Avro values, whose schemas are in a schema registry: "
                    "set processor.schema_registry.url"
                )
            adapter = _adapter(name, payload)
            self._registry = registry = SchemaRegistry(settings)
            self._decode = lambda value: adapter.validate_python(registry.avro(value))
        else:
            in_json = _adapter(name, payload)
            self._decode = in_json.validate_json
            if takes_decimal(in_json.core_schema):
                self._decode = lambda value: in_json.validate_json(with_exact_numbers(value))

    def decodes_at_once(self, record: Record) -> bool:
        """Return whether `decode` neither asks for a schema nor takes long."""
        return self._registry is None or record.value is None or self._registry.is_quick(record.value)

    def decode(self, record: Record) -> Any:
        """Decode the value.

        Raises:
            MalformedError: it isn't a value of the type.
            TransientError: the schema registry doesn't answer.
        """
        if record.value is None:
            if self._payload.accepts_none:
                return None
            name = self._payload.name
            raise MalformedError(f"the value is null, not {name}; a handler that takes null is annotated {name} | None")
        if self._registry is not None and (problem := id_in_header(record.headers)):
            raise MalformedError(problem)
        try:
            return self._decode(record.value)
        except MalformedError:
            raise
        except ValidationError as error:
            if self._payload.format is Format.JSON and names_schema(record.value):
                raise MalformedError(id_before_json(record.value)) from None
            # Its own text and traceback would quote the value.
            raise MalformedError(f"the value isn't {self._payload.name}: {_problems(error)}") from None
        except Exception as error:
            if is_retriable(error):
                raise
            text = f"{type(error).__name__}: {error}"
            raise MalformedError(
                f"the value isn't {self._payload.name} in {self._payload.format.value}: {text}"
            ) from error


def _adapter(name: str, payload: Payload) -> TypeAdapter[Any]:
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(payload.annotation)
        # A model that names a type not defined yet is completed, or refused here instead of at each record.
        adapter.rebuild(raise_errors=True)
    except Exception as error:
        raise ConfigurationError(
            f"handler {name!r}: no value can be decoded to {payload.name}: {type(error).__name__}: {error}"
        ) from error
    return adapter


def _problems(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    shown = [": ".join(filter(None, (".".join(map(str, one["loc"])), one["msg"]))) for one in found[:_SHOWN_PROBLEMS]]
    more = len(found) - len(shown)
    return "; ".join([*shown, *([f"{more} more"] if more else [])])
