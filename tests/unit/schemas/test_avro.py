"""Avro within bounds: what would end a process or fill it is refused, and everything else is read as fastavro does."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from fastavro.utils import generate_many

from wait_registry.errors import MalformedError
from wait_registry.schemas.avro import MOST_LEVELS, AvroSchema


def record(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": field, "type": kind} for field, kind in fields.items()]}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def logical(kind: str, name: str, **more: int) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


NODE = record("N", next=["null", "N"])
TEXTS = record("S", s="string", next=["null", "S"])
DECIMAL = logical("bytes", "decimal", precision=9, scale=2)
EMPTY = record("A0")
DOUBLED = [EMPTY, *(record(f"A{level}", a=f"A{level - 1}", b=f"A{level - 1}") for level in range(1, 40))]
CHAIN = [EMPTY, *(record(f"A{level}", a=f"A{level - 1}") for level in range(1, 8_000))]
NESTED = json.loads('{"type":"array","items":' * 450 + '"int"' + "}" * 450)
WIDE = array(record("W", id="int", **{f"n{number}": "null" for number in range(100)}))
BILLIONS = b"\xfe\xff\xff\xff\x0f"
MEGABYTE = b"\x80\x80\x80\x01"  # a length of 1 MiB

DEEP, MANY = "nested too deep, expected at most 100 levels", "it has more than "
HOSTILE = {
    "levels": (NODE, b"\2" * 5_000 + b"\0", DEEP),
    "levels of a megabyte": (NODE, b"\2" * 1_000_000, DEEP),
    "a chain of types": (CHAIN, b"\xfe\x7c", DEEP),
    "a nested schema": (NESTED, b"\0", DEEP),
    "items without bytes": (array("null"), BILLIONS + b"\0", MANY),
    "the least count": (array("null"), b"\xff" * 9 + b"\1\0\0", MANY),
    "empty records": (array(EMPTY), BILLIONS + b"\0", MANY),
    "fixed without bytes": (array({"type": "fixed", "name": "F", "size": 0}), BILLIONS + b"\0", MANY),
    "doubled types": (DOUBLED, b"\x4e", MANY),
    "fields without bytes": (WIDE, b"\x80\x80\x80\1" + b"\2" * 1_048_576 + b"\0", MANY),
    "a long decimal": (record("D", price=DECIMAL), MEGABYTE + b"\x7f" * 1_048_576, "4,096 bytes, not 1,048,576"),
    "a long number": (record("L", n="long", next=["null", "L"]), b"\xff" * 1_000_000, "more than 10 bytes"),
    "a length beyond the end": (TEXTS, BILLIONS + b"a", "2,147,483,647 bytes are expected at byte 5, and 1 are left"),
    "a negative length": (TEXTS, b"\1a", "-1 bytes are expected"),
    "a negative member": (NODE, b"\1", "has no member -1"),
}
READ_ALL = """
import json, resource, sys
from wait_registry.schemas.avro import AvroSchema
from wait_registry.errors import MalformedError
resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
for schema, data in json.load(sys.stdin):
    try:
        read = AvroSchema(schema)
        try:
            read.shown(bytes.fromhex(data), 100_000)
        except MalformedError:
            pass
        read.read(bytes.fromhex(data))
        print("read")
    except MalformedError as error:
        print(error)
"""


def test_a_hostile_value_is_refused_and_ends_no_process() -> None:
    given = json.dumps([(json.dumps(schema), data.hex()) for schema, data, _ in HOSTILE.values()])
    # The tracer of `make coverage` would multiply the time that is bounded here.
    variables = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    command = [sys.executable, "-c", READ_ALL]
    ran = subprocess.run(command, env=variables, input=given, capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stderr) == (0, "")
    for (name, (_, _, expected)), said in zip(HOSTILE.items(), ran.stdout.splitlines(), strict=True):
        assert said.startswith("the value can't be read by its schema: "), name
        assert expected in said, name


@pytest.mark.parametrize("most_values", [50, 150])
def test_a_value_has_as_many_values_as_are_shown(most_values: int) -> None:
    schema, data = AvroSchema(json.dumps(array("int"))), b"\xc8\1" + b"\2" * 100 + b"\0"
    if most_values > 100:
        assert schema.shown(data, most_values) == [1] * 100
    else:
        with pytest.raises(MalformedError, match="more than 50 values"):
            schema.shown(data, most_values)


@pytest.mark.parametrize("levels", [1, MOST_LEVELS, MOST_LEVELS + 1])
def test_a_value_may_have_100_levels(levels: int) -> None:
    schema, data = AvroSchema(json.dumps(NODE)), b"\2" * (levels - 1) + b"\0"
    if levels > MOST_LEVELS:
        with pytest.raises(MalformedError, match=DEEP):
            schema.read(data)
    else:
        assert str(schema.read(data)).count("next") == levels


TREE = record("Tree", of=array("Tree"), by={"type": "map", "values": "Tree"}, value=["null", "string", "Tree"])
EACH_TYPE = record(
    "all.Types",
    a="boolean", b="int", c="long", d="float", e="double", f="bytes", g="string",
    h={"type": "enum", "name": "E", "symbols": ["X", "Y"]}, i={"type": "fixed", "name": "F", "size": 3},
    j=array(["null", "E", "F"]), k={"type": "map", "values": array("all.E")}, l=record("Inner", z="null"), m="Inner",
)  # fmt: skip
AGREED = [
    (EACH_TYPE, None),
    (["null", EACH_TYPE], None),
    ("string", ["", "ä"]),
    (TREE, [{"of": [], "by": {"a": {"of": [], "by": {}, "value": "b"}}, "value": {"of": [], "by": {}, "value": None}}]),
    (record("P", price=DECIMAL, at=logical("long", "timestamp-micros")), [{"price": "1.50", "at": 1}]),
    (record("I", id=logical("string", "uuid"), on=logical("int", "date")), [{"id": f"{'1' * 32}", "on": 1}]),
]


@pytest.mark.parametrize(("schema", "values"), AGREED)
def test_it_reads_what_fastavro_reads(schema: Any, values: list[Any] | None) -> None:
    ours, parsed = AvroSchema(json.dumps(schema)), fastavro.parse_schema(schema)
    for value in values or generate_many(schema, 50):
        if isinstance(value, dict) and "price" in value:
            value = {**value, "price": Decimal(value["price"])}
        written = io.BytesIO()
        fastavro.schemaless_writer(written, parsed, value)
        data = written.getvalue()
        expected = fastavro.schemaless_reader(io.BytesIO(data), parsed, None)
        assert ours.read(data) == ours.shown(data, 10_000) == expected


@pytest.mark.parametrize(
    ("kind", "data", "raw"),
    [
        (logical("long", "timestamp-millis"), b"\x80\x80\xf2\x81\x83\x89\x85\x06", 1_700_000_000_000_000),
        (logical("long", "timestamp-micros"), b"\xfe" + b"\xff" * 8 + b"\1", 2**63 - 1),
        (logical("int", "date"), b"\xfe\xff\xff\xff\x0f", 2**31 - 1),
        (logical("int", "time-millis"), b"\x80\xe0\xe5\xa4\1", 172_800_000),
        (logical("string", "uuid"), b"\x08text", "text"),
    ],
)
def test_what_python_has_no_value_for_is_shown_as_written(kind: Any, data: bytes, raw: Any) -> None:
    schema = AvroSchema(json.dumps(record("R", id="int", at=kind)))
    assert schema.shown(b"\2" + data, 10) == {"id": 1, "at": raw}
    expected = f"field at: Python's type for {kind['logicalType']} can't hold it"
    with pytest.raises(MalformedError, match=expected) as said:
        schema.read(b"\2" + data)
    assert str(raw) not in str(said.value), "a message goes into logs"
