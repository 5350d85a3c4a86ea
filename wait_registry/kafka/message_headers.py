"""Workaround: reading the headers of a consumed message, which confluent-kafka 2.16 can't always decode."""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller
from typing import Final

from confluent_kafka import Message

from wait_registry.records.headers import Headers

# Raised for a name that isn't UTF-8. Don't ask the message again: the list would hold a null pointer as the name.
UNREADABLE: Final = (SystemError, UnicodeDecodeError)

# Not `message.headers()`: when CPython (from 3.11) has specialized that call, it no longer checks that a result comes
# without an exception, so the list with the null pointer would pass, and the exception would appear at a later line.
headers_of: Final[Callable[[Message], Headers | None]] = methodcaller("headers")
