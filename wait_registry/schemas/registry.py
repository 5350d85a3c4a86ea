"""Values that begin with the ID of a schema, decoded with the schemas of a registry."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

from wait_registry.errors import ConfigurationError, MalformedError, TransientError
from wait_registry.records.headers import Headers
from wait_registry.settings.processor import SchemaRegistrySettings

if TYPE_CHECKING:
    from wait_registry.schemas.avro import AvroSchema

log = logging.getLogger(__name__)

# A magic byte and four bytes of the schema's ID.
_MAGIC: Final = b"\0"
PREFIX_BYTES: Final = 5
REQUEST_LIMIT_S: Final = 5.0
# The registry's own code for an ID that no schema has; a 404 without it is another server's, or a wrong path.
_SCHEMA_NOT_FOUND: Final = 40403
# Where Confluent's serializers write the ID if they don't write it in front of the value.
_ID_HEADER: Final = "__value_schema_id"
# More values take too long to be read for a page.
_MOST_SHOWN_VALUES: Final = 100_000
# Protobuf schemas as descriptors, which need no compiler.
_SERIALIZED: Final = "serialized"


def names_schema(value: bytes) -> bool:
    """Return whether a value begins as one that names its schema."""
    return len(value) > PREFIX_BYTES and value[:1] == _MAGIC


def id_in_header(headers: Headers) -> str:
    """Return why a value isn't decoded whose schema's ID is in a header; "" if no header has it."""
    if next((value for name, value in headers if name == _ID_HEADER), None) is None:
        return ""
    return (
        f"the schema's ID is in the header {_ID_HEADER}, which isn't supported: "
        "let the producer write it in front of the value"
    )


def id_before_json(value: bytes) -> str:
    """Return why a value isn't decoded that is JSON after the ID of a schema."""
    schema_id = int.from_bytes(value[1:PREFIX_BYTES])
    return (
        f"the value begins with the ID of a schema ({schema_id}), which isn't supported for JSON: "
        "let the producer write the JSON alone"
    )


def for_display(settings: SchemaRegistrySettings) -> SchemaRegistry | None:
    """Return the registry by which values are shown; None, with the reason in the log, if it can't be used."""
    if not settings.url:
        return None
    try:
        return SchemaRegistry(settings)
    except ConfigurationError as error:
        log.warning("values with a schema are shown as they are: %s", error)
        return None


class SchemaRegistry:
    """The schemas of one registry, each looked up once.

    Args:
        settings: where it is.

    Raises:
        ConfigurationError: the extra is missing, or the client refuses the settings.
    """

    def __init__(self, settings: SchemaRegistrySettings) -> None:
        self._lookups = _Lookups(_client(settings))
        self._known: set[bytes] = set()
        self._avro: dict[bytes, AvroSchema] = {}

    def is_quick(self, value: bytes) -> bool:
        """Return whether decoding a value makes no request, since its schema is known, and takes no long time."""
        prefix = value[:PREFIX_BYTES]
        schema = self._avro.get(prefix)
        return prefix in self._known if schema is None else schema.is_quick(len(value))

    def avro(self, value: bytes) -> Any:
        """Decode an Avro value to dicts, lists and simple values.

        Raises:
            MalformedError: the registry doesn't know the ID, or the value is out of bounds.
            TransientError: the registry can't be asked.
        """
        if not names_schema(value):
            raise MalformedError("the value doesn't begin with the ID of a schema, as Confluent's serializers write it")
        return self._avro_schema(value).read(value[PREFIX_BYTES:])

    def protobuf(self, message_class: Any) -> Callable[[bytes], Any]:
        """Return what decodes a Protobuf value to a message; see `_remembering`."""
        # Without the extra there is no registry, so this isn't reached.
        from wait_registry.schemas.protobuf import deserializer

        return self._remembering(deserializer(message_class, self._lookups))

    def content(self, value: bytes) -> tuple[str, Any]:
        """Decode a value by the schema that it names, to be shown.

        Returns:
            ``Avro`` or ``Protobuf``, and the content in dicts, lists and simple values.

        Raises:
            MalformedError: the value or its schema can't be read.
            TransientError: the registry doesn't answer.
        """
        try:
            schema = self._lookups.get_schema(int.from_bytes(value[1:PREFIX_BYTES]), fmt=_SERIALIZED)
            if schema.schema_type == "PROTOBUF":
                # As in `protobuf`.
                from wait_registry.schemas.protobuf import content_of

                return "Protobuf", content_of(value, schema, self._references(schema, {}, fmt=_SERIALIZED))
            if schema.schema_type == "AVRO":
                return "Avro", self._avro_schema(value).shown(value[PREFIX_BYTES:], _MOST_SHOWN_VALUES)
        except (MalformedError, TransientError):
            raise
        except Exception as error:
            raise MalformedError(f"the value can't be read by its schema: {type(error).__name__}: {error}") from error
        if schema.schema_type == "JSON":
            raise MalformedError(id_before_json(value))
        raise MalformedError(f"the value's schema is of the type {schema.schema_type}: expected AVRO or PROTOBUF")

    def _avro_schema(self, value: bytes) -> AvroSchema:
        """Return the schema that a value names, looked up once."""
        # As in `protobuf`.
        from wait_registry.schemas.avro import AvroSchema

        prefix = value[:PREFIX_BYTES]
        if prefix not in self._avro:
            schema = self._lookups.get_schema(int.from_bytes(prefix[1:]))
            if schema.schema_type != "AVRO":
                raise MalformedError(f"the value's schema is of the type {schema.schema_type}: expected AVRO")
            referred = self._references(schema, {})
            self._avro[prefix] = AvroSchema(schema.schema_str, [one.schema_str for one in referred.values()])
        return self._avro[prefix]

    def _references(self, schema: Any, found: dict[str, Any], **form: str) -> dict[str, Any]:
        """Return the schemas that a schema refers to by their names, each after those that it refers to itself."""
        for reference in schema.references or ():
            if reference.name not in found:
                version = self._lookups.get_version(reference.subject, reference.version, deleted=True, **form)
                self._references(version.schema, found, **form)
                found[reference.name] = version.schema
        return found

    def _remembering(self, deserialize: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
        """Return a decoder that remembers which schemas its deserializer has, and looks up others.

        It raises MalformedError if the registry doesn't know the ID, TransientError if the registry can't be asked.
        """

        def decode(value: bytes) -> Any:
            decoded = deserialize(value)
            self._known.add(value[:PREFIX_BYTES])
            return decoded

        return decode


class _Lookups:
    """The registry's client. Its own failures become errors that differ from those of a bad value.

    The deserializers let both pass as they are (confluentinc/confluent-kafka-python issue 1325).
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)

        @wraps(method)
        def ask(*arguments: Any, **named: Any) -> Any:
            try:
                return method(*arguments, **named)
            except Exception as error:
                if getattr(error, "error_code", None) == _SCHEMA_NOT_FOUND:
                    raise MalformedError(f"the schema registry doesn't know the value's schema: {error}") from error
                text = f"{type(error).__name__}: {error}"
                raise TransientError(f"processor.schema_registry.url gave no schema: {text}") from error

        return ask


def _client(settings: SchemaRegistrySettings) -> Any:
    try:
        # The extra schema-registry may be missing.
        from confluent_kafka.schema_registry import SchemaRegistryClient
    except ImportError as error:
        raise ConfigurationError(
            f"a schema registry needs a package that isn't installed: {error}. "
            "Fix: pip install 'wait-registry[schema-registry]'"
        ) from error
    # The attempts of a record are the only retries.
    configuration: dict[str, object] = {"url": settings.url, "timeout": REQUEST_LIMIT_S, "max.retries": 0}
    if settings.username is not None and settings.password is not None:
        configuration["basic.auth.user.info"] = f"{settings.username}:{settings.password.get_secret_value()}"
    try:
        return SchemaRegistryClient(configuration)
    except (ValueError, OSError) as error:
        raise ConfigurationError(f"processor.schema_registry can't be used: {type(error).__name__}: {error}") from error
