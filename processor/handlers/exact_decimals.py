"""Exact numbers for types with a Decimal: pydantic's JSON parser rounds them to 64-bit floats, and leaves text alone.

Unnecessary once pydantic/pydantic-core issue 1688 is resolved.
"""

from __future__ import annotations

import re
from decimal import Decimal
from math import isfinite
from typing import Any, Final

from pydantic_core import from_json

# Strings match as a whole, so that nothing in one is taken for a number. Without backtracking: each byte is read once.
_TEXT_OR_NUMBER: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|-?[0-9]++(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+', re.DOTALL)


def takes_decimal(schema: Any) -> bool:
    """Return whether a core schema of pydantic has a Decimal anywhere."""
    if isinstance(schema, dict):
        return schema.get("type") == "decimal" or any(map(takes_decimal, schema.values()))
    return isinstance(schema, list | tuple) and any(map(takes_decimal, schema))


def with_exact_numbers(value: bytes) -> bytes:
    """Return a JSON text in which each number that a float would change is text; what isn't JSON stays as it is."""
    exact = _TEXT_OR_NUMBER.sub(_exact, value)
    if exact != value:
        try:
            from_json(value)  # the name of a member can be text, and not a number
        except ValueError:
            return value
    return exact


def _exact(found: re.Match[bytes]) -> bytes:
    text = found[0]
    if text[:1] == b'"' or not re.search(rb"[.eE]", text):  # whole numbers come as they are
        return text
    nearest = float(text)
    # What is beyond a float is refused: its Decimal could have any number of digits.
    if not isfinite(nearest) or Decimal(repr(nearest)) == Decimal(text.decode()):
        return text
    return b'"%b"' % text
