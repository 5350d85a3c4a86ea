"""Avro values, read within bounds: no value and no schema can end the process, or take hours or gigabytes.

fastavro 1.13's native reader has no bound on levels (3,000 are read, 5,000 end the process with SIGSEGV), on items
without bytes, or on the digits of a decimal. So fastavro reads a value only if its schema and its size show that it is
within the bounds. `_Reader` reads any other value, and counts.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any, Final, NamedTuple

from fastavro import parse_schema, schemaless_reader
from fastavro.read import LOGICAL_READERS

from wait_registry.errors import MalformedError

# As Protobuf, and as planned for Avro's own readers (AVRO-4302).
MOST_LEVELS: Final = 100
# A value has more only if it has more bytes than that.
MOST_VALUES: Final = 1_000_000
# JSON of a schema takes up to three levels per level of a value.
_MOST_LEVELS_OF_JSON: Final = 4 * MOST_LEVELS
# The time of a decimal grows with the square of its size, and no other thread runs: 16 s for 256 KiB.
_MOST_DECIMAL_BYTES: Final = 4_096
_LONGEST_NUMBER: Final = 70
_RECORDS: Final = ("record", "error")
_BYTES_OF: Final = {
    "null": 0, "boolean": 1, "int": 1, "long": 1, "float": 4, "double": 8, "bytes": 1, "string": 1, "enum": 1,
}  # fmt: skip
_TYPES: Final = frozenset((*_BYTES_OF, *_RECORDS, "fixed", "array", "map"))
_CANNOT: Final = "the value can't be read by its schema"


class AvroSchema:
    """One schema.

    Args:
        text: the schema, JSON.
        references: the schemas that it refers to, each one after those that it refers to itself.

    Raises:
        MalformedError: the schema is nested too deep.
        Exception: fastavro refuses the schema.
    """

    def __init__(self, text: str, references: Sequence[str] = ()) -> None:
        self._names: dict[str, Any] = {}
        try:
            for reference in references:
                parse_schema(_loaded(reference), self._names)
            schema = _loaded(text)
            # fastavro prepares records alone for many reads.
            whole = {"type": "record", "name": "waitreg_value", "fields": [{"name": "value", "type": schema}]}
            self._whole: Any = parse_schema(whole, self._names)
            self._shape = _Shapes(self._names).of(self._whole)
        except RecursionError:
            raise _too_deep() from None
        # Confluent's serializers write bytes as they are.
        self._is_bytes = (schema["type"] if isinstance(schema, dict) else schema) == "bytes"

    def is_quick(self, size: int) -> bool:
        """Return whether fastavro's native reader reads each value of that many bytes within the bounds."""
        shape = self._shape
        return (
            shape.levels <= MOST_LEVELS + 2  # the record around it, and a number or text in the last level
            and shape.values + shape.values_per_byte * size <= MOST_VALUES
            and not (shape.has_decimals and size > _MOST_DECIMAL_BYTES)
        )

    def read(self, data: bytes) -> Any:
        """Return a value as dicts, lists and simple values.

        Raises:
            MalformedError: it is nested too deep, has too many values, or one that Python has no type for.
            Exception: it isn't written by the schema.
        """
        if self._is_bytes:
            return data
        if self.is_quick(len(data)):
            try:
                content: Any = schemaless_reader(io.BytesIO(data), self._whole, None)
                return content["value"]
            except (ArithmeticError, ValueError):
                pass  # The other reader names the field.
        return self._counted(data, max(MOST_VALUES, len(data)), raw=False)

    def shown(self, data: bytes, most_values: int) -> Any:
        """Return a value to be shown: what Python's types can't hold, such as a date far away, as it is written.

        Raises:
            MalformedError: it is nested too deep, or has more values than ``most_values``.
            Exception: it isn't written by the schema.
        """
        return data if self._is_bytes else self._counted(data, most_values, raw=True)

    def _counted(self, data: bytes, most_values: int, raw: bool) -> Any:
        return _Reader(self._names, data, most_values, raw).value(self._whole, -1)["value"]


def _loaded(text: str) -> Any:
    """Return a schema's JSON; fastavro takes a schema apart without a limit on levels."""
    schema = json.loads(text)
    layer = [schema]
    for _ in range(_MOST_LEVELS_OF_JSON):
        layer = [child for one in layer for child in (one.values() if isinstance(one, dict) else one)]
        layer = [one for one in layer if isinstance(one, dict | list)]
        if not layer:
            return schema
    raise RecursionError


def _resolved(schema: Any, names: Mapping[str, Any]) -> tuple[str, Any]:
    """Return a type's kind and its schema; a named one is looked up."""
    kind = schema["type"] if isinstance(schema, dict) else schema
    if kind in _TYPES:
        return kind, schema
    return names[kind]["type"], names[kind]


def _too_deep() -> MalformedError:
    return MalformedError(f"{_CANNOT}: nested too deep, expected at most {MOST_LEVELS} levels")


class _Shape(NamedTuple):
    """What values of a type are at most, without reading one.

    Attributes:
        least: bytes that each value takes.
        levels: how deep they are nested.
        values: how many values one has outside of arrays and maps.
        values_per_byte: how many values a byte of an array or map makes.
        has_decimals: whether there are any.
    """

    least: float = 0
    levels: float = 1
    values: float = 1
    values_per_byte: float = 0
    has_decimals: bool = False


class _Shapes:
    """The shapes of types, each named one looked at once."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names
        self._known: dict[str, _Shape] = {}

    def of(self, schema: Any) -> _Shape:
        """Return the shape of a type; one that contains itself has no bounds."""
        if isinstance(schema, list):
            members = [self.of(member) for member in schema]
            return _Shape(1 + min((one.least for one in members), default=0), *_most(members))
        kind, schema = _resolved(schema, self._names)
        if kind in _RECORDS:
            return self._record(schema)
        if kind in ("array", "map"):
            item = self.of(schema["items" if kind == "array" else "values"])
            least = item.least + (kind == "map")
            dense = max(item.values_per_byte, item.values / least if least else inf)
            return _Shape(1, item.levels + 1, 1, dense, item.has_decimals)
        is_decimal = isinstance(schema, dict) and schema.get("logicalType") == "decimal"
        return _Shape(schema["size"] if kind == "fixed" else _BYTES_OF[kind], has_decimals=is_decimal)

    def _record(self, schema: Any) -> _Shape:
        name = schema["name"]
        if name not in self._known:
            self._known[name] = _Shape(0, inf, inf, inf)
            fields = [self.of(field["type"]) for field in schema["fields"]]
            levels, _, dense, decimals = _most(fields)
            least, values = sum(field.least for field in fields), 1 + sum(field.values for field in fields)
            self._known[name] = _Shape(least, levels + 1, values, dense, decimals)
        return self._known[name]


def _most(shapes: Sequence[_Shape]) -> tuple[float, float, float, bool]:
    """Return what is largest of each but the bytes."""
    return (
        max((one.levels for one in shapes), default=0),
        max((one.values for one in shapes), default=0),
        max((one.values_per_byte for one in shapes), default=0),
        any(one.has_decimals for one in shapes),
    )


class _Reader:
    """Reads one value and counts."""

    def __init__(self, names: Mapping[str, Any], data: bytes, most_values: int, raw: bool) -> None:
        self._names = names
        self._data = data
        self._at = 0
        self._most = most_values
        self._left = most_values + 1  # the record around the value
        self._raw = raw
        self._field = ""
        self._logical: Mapping[str, Any] = LOGICAL_READERS

    def value(self, schema: Any, level: int) -> Any:
        """Read one value of a type."""
        self._left -= 1
        if self._left < 0:
            raise MalformedError(f"{_CANNOT}: it has more than {self._most:,} values")
        if level > MOST_LEVELS:
            raise _too_deep()
        if isinstance(schema, list):
            schema = schema[self._index(len(schema))]
        kind, schema = _resolved(schema, self._names)
        if kind in _RECORDS:
            return self._record(schema["fields"], level + 1)
        if kind == "array":
            return [self.value(schema["items"], level + 1) for _ in self._items()]
        if kind == "map":
            return {self._bytes(self._long()).decode(): self.value(schema["values"], level + 1) for _ in self._items()}
        found = self._simple(kind, schema)
        logical = schema.get("logicalType") if isinstance(schema, dict) else None
        convert = self._logical.get(f"{kind}-{logical}") if logical else None
        return self._converted(convert, found, schema) if convert else found

    def _record(self, fields: Any, level: int) -> dict[str, Any]:
        found = {}
        for field in fields:
            self._field = field["name"]
            found[field["name"]] = self.value(field["type"], level)
        return found

    def _simple(self, kind: str, schema: Any) -> Any:
        match kind:
            case "null":
                return None
            case "boolean":
                return self._bytes(1) != b"\0"
            case "int" | "long":
                return self._long()
            case "float":
                return struct.unpack("<f", self._bytes(4))[0]
            case "double":
                return struct.unpack("<d", self._bytes(8))[0]
            case "bytes":
                return self._bytes(self._long())
            case "string":
                return self._bytes(self._long()).decode()
            case "fixed":
                return self._bytes(schema["size"])
            case "enum":
                return schema["symbols"][self._index(len(schema["symbols"]))]
        raise MalformedError(f"{_CANNOT}: it has the unknown type {kind}")

    def _converted(self, convert: Any, found: Any, schema: Any) -> Any:
        problem = ""
        if isinstance(found, bytes) and len(found) > _MOST_DECIMAL_BYTES:
            problem = f"expected at most {_MOST_DECIMAL_BYTES:,} bytes, not {len(found):,}"
        else:
            try:
                return convert(found, schema, None)
            except (ArithmeticError, ValueError) as error:
                problem = f"{type(error).__name__}: {error}"
        if self._raw:
            return found
        raise MalformedError(
            f"{_CANNOT}: field {self._field}: Python's type for {schema['logicalType']} can't hold it ({problem})"
        )

    def _items(self) -> Iterator[None]:
        while count := self._long():
            if count < 0:
                count = -count
                self._long()  # the block's size in bytes
            for _ in range(count):
                yield

    def _index(self, size: int) -> int:
        found = self._long()
        if not 0 <= found < size:
            raise MalformedError(f"{_CANNOT}: a union or enum of {size} has no member {found}")
        return found

    def _long(self) -> int:
        found = 0
        for shift in range(0, _LONGEST_NUMBER, 7):
            (byte,) = self._bytes(1)
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (found >> 1) ^ -(found & 1)
        raise MalformedError(f"{_CANNOT}: a number takes more than {_LONGEST_NUMBER // 7} bytes")

    def _bytes(self, size: int) -> bytes:
        start, self._at = self._at, self._at + size
        if size < 0 or self._at > len(self._data):
            left = len(self._data) - start
            raise MalformedError(f"{_CANNOT}: {size:,} bytes are expected at byte {start:,}, and {left:,} are left")
        return self._data[start : self._at]
