"""Protobuf values, decoded to a message class, or by the descriptors that a schema registry has."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Collection, Mapping
from typing import Any

from confluent_kafka.schema_registry import prefix_schema_id_deserializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
from confluent_kafka.schema_registry.serde import SchemaId
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory, text_format


def deserializer(message_class: Any, client: Any) -> Callable[[bytes], Any]:
    """Return what decodes a value to a message of this class, with the schemas that a registry's client looks up."""
    decode: Callable[[bytes], Any] = ProtobufDeserializer(message_class, schema_registry_client=client)
    return decode


def content_of(value: bytes, schema: Any, referred: Mapping[str, Any]) -> Any:
    """Return a value's content in dicts, lists and simple values, or as lines of text if those can't hold it.

    Args:
        value: begins with the ID of its schema.
        schema: with its descriptor as text.
        referred: the schemas that it refers to by their names, each after those that it refers to itself.
    """
    pool = descriptor_pool.DescriptorPool()
    for name, one in (*referred.items(), ("value.proto", schema)):
        _add_file(pool, name, one, referred)
    named = SchemaId("PROTOBUF")
    content = prefix_schema_id_deserializer(value, None, named).read()
    first, *nested = named.message_indexes or [0]
    kind = list(pool.FindFileByName("value.proto").message_types_by_name.values())[first]
    for index in nested:
        kind = kind.nested_types[index]
    message = message_factory.GetMessageClass(kind).FromString(content)
    try:
        return json_format.MessageToDict(message, preserving_proto_field_name=True)
    except (ValueError, ArithmeticError, json_format.Error):  # a time outside of the calendar, for example
        return text_format.MessageToString(message, as_utf8=True).splitlines()


def _add_file(pool: Any, name: str, schema: Any, known: Collection[str]) -> None:
    """Add a schema to those that it refers to; Google's own files are known without a registry."""
    file = descriptor_pb2.FileDescriptorProto.FromString(b64decode(schema.schema_str, validate=True))
    for dependency in file.dependency:
        if dependency not in known:
            pool.AddSerializedFile(descriptor_pool.Default().FindFileByName(dependency).serialized_pb)
    file.name = name
    pool.Add(file)
