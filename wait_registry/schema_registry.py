"""Values that begin with the ID of a schema, decoded by confluent-kafka with the schemas of a registry."""

from __future__ import annotations

import logging
from base64 import b64decode
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from wait_registry.errors import ConfigurationError, MalformedError, TransientError
from wait_registry.settings.processor import SchemaRegistrySettings

log = logging.getLogger(__name__)

# A magic byte and four bytes of the schema's ID.
_MAGIC: Final = b"\0"
_PREFIX_BYTES: Final = 5
REQUEST_LIMIT_S: Final = 5.0
# The registry's own code for an ID that no schema has; a 404 without it is another server's, or a wrong path.
_SCHEMA_NOT_FOUND: Final = 40403
# Protobuf schemas as descriptors, which need no compiler.
_SERIALIZED: Final = "serialized"


def names_schema(value: bytes) -> bool:
    """Return whether a value begins as one that names its schema."""
    return len(value) > _PREFIX_BYTES and value[:1] == _MAGIC


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

    def knows(self, value: bytes) -> bool:
        """Return whether a value's schema was looked up, so that decoding it makes no request."""
        return value[:_PREFIX_BYTES] in self._known

    def avro(self) -> Callable[[bytes], Any]:
        """Return what decodes an Avro value to dicts, lists and simple values; see `_remembering`."""
        from confluent_kafka.schema_registry.avro import AvroDeserializer

        return self._remembering(AvroDeserializer(self._lookups))

    def protobuf(self, message_class: Any) -> Callable[[bytes], Any]:
        """Return what decodes a Protobuf value to a message; see `_remembering`."""
        from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer

        return self._remembering(ProtobufDeserializer(message_class, schema_registry_client=self._lookups))

    def content(self, value: bytes) -> tuple[str, Any]:
        """Decode a value by the schema that it names.

        Returns:
            ``Avro`` or ``Protobuf``, and the content in dicts, lists and simple values.

        Raises:
            MalformedError: the value or its schema can't be read.
            TransientError: the registry doesn't answer.
        """
        try:
            schema = self._lookups.get_schema(int.from_bytes(value[1:_PREFIX_BYTES]), fmt=_SERIALIZED)
            if schema.schema_type == "PROTOBUF":
                return "Protobuf", self._message(value, schema)
            if schema.schema_type == "AVRO":
                return "Avro", self.avro()(value)
        except (MalformedError, TransientError):
            raise
        except Exception as error:
            raise MalformedError(f"the value can't be read by its schema: {type(error).__name__}: {error}") from error
        raise MalformedError(f"the value's schema is of the type {schema.schema_type}: expected AVRO or PROTOBUF")

    def _message(self, value: bytes, schema: Any) -> Any:
        from confluent_kafka.schema_registry import prefix_schema_id_deserializer
        from confluent_kafka.schema_registry.serde import SchemaId
        from google.protobuf import descriptor_pool, json_format, message_factory

        pool = descriptor_pool.DescriptorPool()
        self._add_file(pool, "value.proto", schema)
        named = SchemaId("PROTOBUF")
        content = prefix_schema_id_deserializer(value, None, named).read()
        first, *nested = named.message_indexes or [0]
        kind = list(pool.FindFileByName("value.proto").message_types_by_name.values())[first]
        for index in nested:
            kind = kind.nested_types[index]
        message = message_factory.GetMessageClass(kind).FromString(content)
        return json_format.MessageToDict(message, preserving_proto_field_name=True)

    def _add_file(self, pool: Any, name: str, schema: Any) -> None:
        """Add a schema and what it refers to; Google's own files are known without a registry."""
        from google.protobuf import descriptor_pb2, descriptor_pool

        file = descriptor_pb2.FileDescriptorProto.FromString(b64decode(schema.schema_str, validate=True))
        for reference in schema.references:
            referred = self._lookups.get_version(reference.subject, reference.version, fmt=_SERIALIZED)
            self._add_file(pool, reference.name, referred.schema)
        known = {reference.name for reference in schema.references}
        for dependency in file.dependency:
            if dependency not in known:
                pool.AddSerializedFile(descriptor_pool.Default().FindFileByName(dependency).serialized_pb)
        file.name = name
        pool.Add(file)

    def _remembering(self, deserialize: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
        """Return a decoder that remembers which schemas its deserializer has, and looks up others.

        It raises MalformedError if the registry doesn't know the ID, TransientError if the registry can't be asked.
        """

        def decode(value: bytes) -> Any:
            decoded = deserialize(value)
            self._known.add(value[:_PREFIX_BYTES])
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
